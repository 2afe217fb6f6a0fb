"""Sentences: templates of findings, notes and summaries, filled with the columns of a query.

A template is a list of clauses, joined by "; ". A clause names columns in braces:

- `{idle_ns}`: the value with the unit of the column's suffix, as in tables: 2.29 ms, 64 KiB, 12.5%.
- `{reads:read}`: a count with its noun: 1 read, 12 reads. `{chains:chain saves|chains save}` gives both forms.
- `{ranks:rank}` of a list: the noun before its items: rank 3; ranks 0, 1, 2.
- `{#ranks:is|are}`: only the form of the noun or verb, for a count or the length of a list.
- `{?is_pinned}`: prints nothing; the clause is left out if the column is NULL or false.
- `<, {outliers} of them outliers>`: a part that is left out alone if one of its columns is NULL. Brackets without a
  column stay: cublas<t>gemm.

A clause with a column that is NULL is left out. A list of clauses inside a template is a choice: the first one without
a NULL counts. A column with a list of structs has a template of its own in `[items]`, for each of its items.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nsys_insight.text.kernel_names import fit, fit_all, make_all_readable, make_readable
from nsys_insight.text.units import is_id, label_of, time_text, value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Clause = str | Sequence[str]

# A longer name, such as a kernel's, is shortened in the middle.
MAX_NAME_CELLS = 56
# The name of a C++ template, with its arguments.
_TEMPLATE = re.compile(r"\w<.*>")
_FIELD = re.compile(r"\{([?#]?)(\w+)(?::([^{}]+))?\}")
_OPTIONAL_PART = re.compile(r"<([^<>{}]*\{[^<>]*)>")
_MAX_LISTED = 8


def fill_template(
    clauses: Iterable[Clause],
    columns: Mapping[str, Any],
    items: Mapping[str, Sequence[Clause]] | None = None,
    *,
    separator: str = "; ",
) -> str:
    """Fill a template with the columns of a row; "" if all its clauses are left out.

    Args:
        clauses: The template.
        columns: The columns of the row by name, in base units.
        items: The templates of columns that are lists of structs.
        separator: What is between clauses.

    Raises:
        KeyError: A clause names a column that the row does not have.
    """
    alternatives = ((clause,) if isinstance(clause, str) else clause for clause in clauses)
    texts = (
        next((text for clause in choice if (text := _fill_clause(clause, columns, items or {}))), "")
        for choice in alternatives
    )
    return separator.join(text for text in texts if text)


def list_columns(clauses: Iterable[Clause]) -> set[str]:
    """Return the columns that a template names."""
    return {
        name
        for clause in clauses
        for text in ((clause,) if isinstance(clause, str) else clause)
        for _, name, _ in _FIELD.findall(text)
    }


def show_columns(clause: str) -> str:
    """Write a clause with the names of its columns in italics instead of their values."""

    def show_field(field: re.Match[str]) -> str:
        mark, name, noun = field.groups()
        if mark:
            return noun.partition("|")[2] if noun else ""
        if noun:
            return f"*n* {noun.partition('|')[2] or noun + 's'}"
        return f"*{label_of(name)}*" if name != "per" else "per step"

    return _FIELD.sub(show_field, _OPTIONAL_PART.sub(r"\1", clause))


def format_value(column: str, raw: Any) -> str:
    """Format a value for a sentence: with its unit, times with three significant digits."""
    if column.endswith("_ns") and isinstance(raw, int | float):
        return time_text(raw)
    if is_id(column):
        return str(raw)
    if isinstance(raw, str) and (" " not in raw or _TEMPLATE.search(raw)):
        return fit(make_readable(raw), MAX_NAME_CELLS)
    return value(column, raw)


def _fill_clause(clause: str, columns: Mapping[str, Any], items: Mapping[str, Sequence[Clause]]) -> str:
    """Fill a clause; "" if a column outside of its optional parts, which are every second part, is NULL."""
    texts = [_fill_part(part, columns, items) for part in _OPTIONAL_PART.split(clause)]
    return "" if None in texts[::2] else "".join(text or "" for text in texts).strip()


def _fill_part(part: str, columns: Mapping[str, Any], items: Mapping[str, Sequence[Clause]]) -> str | None:
    for mark, name, _ in _FIELD.findall(part):
        if columns[name] is None or (mark == "?" and columns[name] is False):
            return None

    def fill_field(field: re.Match[str]) -> str:
        mark, name, noun = field.groups()
        if mark == "?":
            return ""
        if noun is None:
            return fill_value(name, columns[name])
        return _count(name, columns[name], noun, has_number=not mark)

    def fill_value(name: str, raw: Any) -> str:
        if not isinstance(raw, list):
            return format_value(name, raw)
        clauses = items.get(name, ())
        raw = _tell_apart(raw) if clauses else raw
        texts = [fill_template(clauses, {**columns, **item}, separator=", ") if clauses else str(item) for item in raw]
        # Short items are a list, items of several clauses or with a list of their own are sentences.
        is_long = len(clauses) > 1 or any(isinstance(cell, list) for item in raw if clauses for cell in item.values())
        return ("; " if is_long else ", ").join(texts)

    return _FIELD.sub(fill_field, part)


def _tell_apart(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Shorten names of a list that would look the same so that they show where they differ."""
    for column in {column for item in items for column, cell in item.items() if isinstance(cell, str)}:
        names = {item[column] for item in items} - {None}
        if len({format_value(column, name) for name in names}) < len(names):
            readable_names = make_all_readable(names)
            short_names = fit_all(readable_names.values(), MAX_NAME_CELLS)
            texts = {name: short_names[text] for name, text in readable_names.items()}
            items = [{**item, column: texts.get(item[column])} for item in items]
    return items


def _count(name: str, raw: Any, noun: str, *, has_number: bool) -> str:
    """Write a count with its noun, a list after its noun, or only the form of the noun."""
    singular, _, plural = noun.partition("|")
    form = singular if (len(raw) if isinstance(raw, list) else raw) == 1 else plural or singular + "s"
    if not has_number:
        return form
    return f"{form} {list_first(raw)}" if isinstance(raw, list) else f"{format_value(name, raw)} {form}"


def list_first(items: Sequence[object]) -> str:
    """List the first items, and say how many more there are: 0, 1, 2 and 5 more."""
    names = ", ".join(map(str, items[:_MAX_LISTED]))
    return f"{names} and {len(items) - _MAX_LISTED} more" if len(items) > _MAX_LISTED else names
