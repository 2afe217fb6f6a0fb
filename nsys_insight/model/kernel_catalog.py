"""The catalog of kernel names, which people edit: it maps a name to a family and a provenance.

A user's own entries come first: files of the same names in ``$NSYS_INSIGHT_CATALOG_DIR``, else in the folder `catalog`
of the user's configuration.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import UsageError
from nsys_insight.paths import queries_folder, user_folder
from nsys_insight.records import RecordError, check, make_record, parse_toml
from nsys_insight.sql.quoting import literal, matches

if TYPE_CHECKING:
    from pathlib import Path

# The kernel's own name: the text before its template arguments and parameters. A short or mangled name has only this.
_OWN_NAME = r"^(?:<unnamed>|\(anonymous namespace\)|[^<(])*"


@dataclass(frozen=True)
class CatalogEntry:
    """One entry of a catalog: the family or provenance of the kernels whose name matches.

    `words` must be in the kernel's own name (`build_words_pattern`). `patterns` are regular expressions that are
    searched in the full name. `examples` are names that must get this value from this entry, not from an earlier one.
    """

    value: str
    words: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()

    @property
    def regex(self) -> str:
        """Return words and patterns as one regular expression, valid for both RE2 (DuckDB) and Python's `re`."""
        return "|".join(([build_words_pattern(self.words)] if self.words else []) + list(self.patterns))


def read_families() -> list[CatalogEntry]:
    """Read the entries for kernel families, in the order in which they are tried."""
    return _read("kernel_families.toml", "family")


def read_provenances() -> list[CatalogEntry]:
    """Read the entries for kernel provenances, in the order in which they are tried."""
    return _read("kernel_provenance.toml", "provenance")


def write_macros() -> list[str]:
    """Write the SQL that creates the scalar macros `kernel_family(name)` and `kernel_provenance(name)`.

    Both take a demangled, short or mangled name and return VARCHAR, NULL for NULL. A name that no entry matches has the
    family `other` and the provenance `hand-written`. Apply the macros to distinct names: they cost some microseconds
    per name.
    """
    return [
        _write_macro("kernel_family", read_families(), "other"),
        _write_macro("kernel_provenance", read_provenances(), "hand-written"),
    ]


def build_words_pattern(words: tuple[str, ...]) -> str:
    """Write the regular expression that finds one of `words` as a separate word in a kernel's own name.

    No lowercase letter may follow a word. It starts after a character that is not a letter, or with a capital: `rope`
    matches `rope_neox`, `4rope` and `fusedRope`, not `property`. An underscore in `words` is optional in the name.
    """
    any_case = "|".join(word.replace("_", "_?") for word in words)
    camel_case = "|".join(_camel_case(word) for word in words)
    # A plain function is mangled as _Z<length><name><types>, and the types can be lowercase letters: _Z3addiPf.
    spellings = dict.fromkeys(spelling for word in words for spelling in (word, word.replace("_", "")))
    mangled = "|".join(f"{len(spelling)}{spelling}" for spelling in spellings)
    begin = f"(?:(?:^|{_OWN_NAME}[^A-Za-z<(])(?i:{any_case})|{_OWN_NAME}(?:{camel_case}))"
    return f"{begin}(?:[^a-z]|$)|^_Z(?:{mangled})"


def _camel_case(word: str) -> str:
    """Write `soft_max` as `Soft_?[Mm]ax`."""
    first, *later_words = word.split("_")
    return "_?".join([first.capitalize(), *(f"[{part[0].upper()}{part[0]}]{part[1:]}" for part in later_words)])


def _read(file: str, key: str) -> list[CatalogEntry]:
    return [
        *_read_user_entries(user_folder("catalog") / file, key),
        *_parse_entries(queries_folder() / "catalog" / file, key),
    ]


@cache
def _parse_entries(path: Path, key: str) -> list[CatalogEntry]:
    tables = parse_toml(path.read_text(encoding="utf-8"))
    entries = check(tables.get("kernels"), list[Any] | None, "kernels")
    if entries is None:
        raise RecordError("it lacks 'kernels'")
    return [
        make_record(CatalogEntry, entry, f"kernels[{number}]", names={"value": key})
        for number, entry in enumerate(entries)
    ]


def _read_user_entries(path: Path, key: str) -> list[CatalogEntry]:
    """Read the user's file with this name, if it exists.

    Raises:
        UsageError: It does not have the format of the catalog's file.
    """
    if not path.is_file():
        return []
    import duckdb

    hint = f"write it as queries/catalog/{path.name}: [[kernels]] with {key}, and words or patterns; or move it away"
    try:
        entries = _parse_entries(path, key)
        with duckdb.connect() as connection:
            for entry in entries:
                connection.execute(f"SELECT regexp_matches('', {literal(entry.regex)})")
    except (OSError, ValueError, duckdb.Error) as error:
        reason = str(error).partition("\n")[0]
        raise UsageError(f"{path} is not valid: {reason}", hint) from None
    return entries


def _write_macro(name: str, entries: list[CatalogEntry], unknown: str) -> str:
    """Write a macro with one CASE. Each entry is a constant regular expression, which DuckDB compiles once."""
    cases = "\n".join(f"WHEN {matches('name', entry.regex)} THEN {literal(entry.value)}" for entry in entries)
    return (
        f"CREATE OR REPLACE MACRO {name}(name) AS CASE\n"
        f"WHEN name IS NULL THEN NULL\n{cases}\nELSE {literal(unknown)} END"
    )
