"""Sentences of a finding: templates in the header of its rule, filled with the columns of its query.

A template is a list of clauses, joined by "; ". A clause names columns in braces:

- `{idle_ns}`: the value with the unit of the column's suffix, as in tables: 2.29 ms, 64 KiB, 12.5%.
- `{reads:read}`: a count with its noun: 1 read, 12 reads. `{chains:chain saves|chains save}` gives both forms.
- `{?is_pinned}`: prints nothing; the clause is left out if the column is NULL or false.

A clause with a column that is NULL is left out. A list of clauses inside a template is a choice: the first one without
a NULL counts. A column with a list of structs has a template of its own in `[items]`, for each of its items.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nsys_insight.text.kernel_names import fit, make_readable
from nsys_insight.text.units import label_of, time_text, value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Clause = str | Sequence[str]

# A longer name, such as a kernel's, is shortened in the middle.
MAX_NAME_CELLS = 56
# The name of a C++ template, with its arguments.
_TEMPLATE = re.compile(r"\w<.*>")
_FIELD = re.compile(r"\{(\??)(\w+)(?::([^{}]+))?\}")


def fill_template(
    clauses: Iterable[Clause], columns: Mapping[str, Any], items: Mapping[str, Sequence[Clause]] | None = None
) -> str:
    """Fill a template with the columns of a row; "" if all its clauses are left out.

    Args:
        clauses: The template.
        columns: The columns of the row by name, in base units.
        items: The templates of columns that are lists of structs.

    Raises:
        KeyError: A clause names a column that the row does not have.
    """
    alternatives = ((clause,) if isinstance(clause, str) else clause for clause in clauses)
    texts = (
        next((text for clause in choice if (text := _fill_clause(clause, columns, items or {}))), "")
        for choice in alternatives
    )
    return "; ".join(text for text in texts if text)


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
        condition, name, noun = field.groups()
        if condition:
            return ""
        if noun:
            return f"*n* {noun.partition('|')[2] or noun + 's'}"
        return f"*{label_of(name)}*" if name != "per" else "per step"

    return _FIELD.sub(show_field, clause)


def format_value(column: str, raw: Any) -> str:
    """Format a value for a sentence: with its unit, times with three significant digits."""
    if column.endswith("_ns") and isinstance(raw, int | float):
        return time_text(raw)
    if isinstance(raw, str) and (" " not in raw or _TEMPLATE.search(raw)):
        return fit(make_readable(raw), MAX_NAME_CELLS)
    return value(column, raw)


def _fill_clause(clause: str, columns: Mapping[str, Any], items: Mapping[str, Sequence[Clause]]) -> str:
    for condition, name, _ in _FIELD.findall(clause):
        if columns[name] is None or (condition and columns[name] is False):
            return ""

    def fill_field(field: re.Match[str]) -> str:
        condition, name, noun = field.groups()
        raw = columns[name]
        if condition:
            return ""
        if isinstance(raw, list):
            # Short items are a list, items of several clauses are sentences.
            separator = ", " if len(items.get(name, ())) <= 1 else "; "
            return separator.join(fill_item(name, item) for item in raw)
        if noun is None:
            return format_value(name, raw)
        singular, _, plural = noun.partition("|")
        return f"{format_value(name, raw)} {singular if raw == 1 else plural or singular + 's'}"

    def fill_item(name: str, item: Any) -> str:
        if name not in items:
            return str(item)
        return fill_template(items[name], {**columns, **item}).replace("; ", ", ")

    return _FIELD.sub(fill_field, clause).strip()
