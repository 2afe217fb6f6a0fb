"""Tell a kernel's family and provenance from its name, by the catalog that people edit.

A user's own entries are tried first: files of the same names in ``$NSYS_INSIGHT_CATALOG_DIR``, else in the folder
`catalog` of the user's configuration.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from nsys_insight.errors import UsageError
from nsys_insight.paths import queries_folder, user_folder
from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    from pathlib import Path

# The kernel's own name: all that stands before its template arguments and parameters. It is the whole of a short or a
# mangled name.
_OWN_NAME = r"^(?:<unnamed>|\(anonymous namespace\)|[^<(])*"


_LISTS = ("words", "patterns", "examples")


@dataclass(frozen=True)
class CatalogEntry:
    """One entry of a catalog: what it says of the kernels whose name matches.

    `words` are looked for in the kernel's own name (`words_pattern`), `patterns` are regular expressions searched in
    the whole name. `examples` are names that must get this value from this entry and no earlier one.
    """

    value: str
    words: tuple[str, ...]
    patterns: tuple[str, ...]
    examples: tuple[str, ...]

    @property
    def regex(self) -> str:
        """All that the entry looks for, as one regular expression for RE2 (DuckDB) and Python's `re` alike."""
        return "|".join(([words_pattern(self.words)] if self.words else []) + list(self.patterns))


def families() -> list[CatalogEntry]:
    """Read what tells a kernel's family, in the order in which it is tried."""
    return _read("kernel_families.toml", "family")


def provenances() -> list[CatalogEntry]:
    """Read what tells a kernel's provenance, in the order in which it is tried."""
    return _read("kernel_provenance.toml", "provenance")


def macros() -> list[str]:
    """Write the SQL that creates the scalar macros `kernel_family(name)` and `kernel_provenance(name)`.

    Both take a demangled, short or mangled name and return VARCHAR, NULL for NULL. A name that the catalog does not
    know is of family `other` and provenance `hand-written`. Apply them to distinct names: they cost some microseconds
    each.
    """
    return [
        _macro("kernel_family", families(), "other"),
        _macro("kernel_provenance", provenances(), "hand-written"),
    ]


def words_pattern(words: tuple[str, ...]) -> str:
    """Write the regular expression that finds one of `words` as a whole word of a kernel's own name.

    A word ends before anything but a small letter, and begins likewise or with a capital: `rope` is found in
    `rope_neox`, `4rope` and `fusedRope`, not in `property`. An underscore in `words` is optional in the name.
    """
    any_case = "|".join(word.replace("_", "_?") for word in words)
    camel_case = "|".join(_camel_case(word) for word in words)
    # A plain function is mangled as _Z<length><name><types>, and the types may be small letters: _Z3addiPf.
    spellings = dict.fromkeys(spelling for word in words for spelling in (word, word.replace("_", "")))
    mangled = "|".join(f"{len(spelling)}{spelling}" for spelling in spellings)
    begin = f"(?:(?:^|{_OWN_NAME}[^A-Za-z<(])(?i:{any_case})|{_OWN_NAME}(?:{camel_case}))"
    return f"{begin}(?:[^a-z]|$)|^_Z(?:{mangled})"


def _camel_case(word: str) -> str:
    """Write `soft_max` as `Soft_?[Mm]ax`."""
    first, *others = word.split("_")
    return "_?".join([first.capitalize(), *(f"[{part[0].upper()}{part[0]}]{part[1:]}" for part in others)])


def _read(file: str, key: str) -> list[CatalogEntry]:
    return [*_own(user_folder("catalog") / file, key), *_entries(queries_folder() / "catalog" / file, key)]


@cache
def _entries(path: Path, key: str) -> list[CatalogEntry]:
    import tomllib

    return [
        CatalogEntry(
            entry[key],
            tuple(entry.get("words", ())),
            tuple(entry.get("patterns", ())),
            tuple(entry.get("examples", ())),
        )
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["kernels"]
    ]


def _own(path: Path, key: str) -> list[CatalogEntry]:
    """Read the user's file of this name, if there is one.

    Raises:
        UsageError: It is not as the catalog's own file.
    """
    if not path.is_file():
        return []
    import duckdb

    hint = f"write it as queries/catalog/{path.name}: [[kernels]] with {key}, and words or patterns; or move it away"
    try:
        entries = _entries(path, key)
        with duckdb.connect() as connection:
            for entry in entries:
                connection.execute(f"SELECT regexp_matches('', {literal(entry.regex)})")
    except KeyError as error:
        raise UsageError(f"an entry of {path} lacks {error}", hint) from None
    except (OSError, ValueError, TypeError, AttributeError, duckdb.Error) as error:
        reason = str(error).partition("\n")[0]
        raise UsageError(f"{path} is not valid: {reason}", hint) from None
    return entries


def _macro(name: str, entries: list[CatalogEntry], unknown: str) -> str:
    """Write one CASE, each entry one constant regular expression that DuckDB compiles once."""
    cases = "\n".join(
        f"WHEN regexp_matches(name, {literal(entry.regex)}) THEN {literal(entry.value)}" for entry in entries
    )
    return (
        f"CREATE OR REPLACE MACRO {name}(name) AS CASE\n"
        f"WHEN name IS NULL THEN NULL\n{cases}\nELSE {literal(unknown)} END"
    )
