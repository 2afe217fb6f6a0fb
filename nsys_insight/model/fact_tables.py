"""Facts that one statement each finds: the files of `queries/facts`, a table's definition and what fills it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

from nsys_insight.paths import queries_folder
from nsys_insight.sql.names import Names, mentioned

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class FactTable:
    """A table of the schema `facts`, which views of the model show."""

    name: str
    path: Path

    @cached_property
    def _text(self) -> tuple[str, str, str]:
        return without_comments(self.path.read_text(encoding="utf-8")).partition("INSERT INTO ")

    @property
    def create(self) -> str:
        """The statement that creates it, without rows, also where it is there."""
        return self._text[0]

    @property
    def fill(self) -> str:
        """The statement that finds its rows."""
        return self._text[1] + self._text[2]

    @property
    def query(self) -> str:
        """The query in it."""
        return self.fill.partition("BY NAME")[2].strip().rstrip(";")

    @cached_property
    def mentions(self) -> Names:
        """What it is found in."""
        return mentioned(self.query)


def without_comments(text: str) -> str:
    """What a file says of tables of facts, without the comments on the views that show them."""
    return text.partition("COMMENT ON ")[0]


@cache
def fact_tables() -> dict[str, FactTable]:
    """The facts by name."""
    return {path.stem: FactTable(path.stem, path) for path in sorted((queries_folder() / "facts").glob("*.sql"))}
