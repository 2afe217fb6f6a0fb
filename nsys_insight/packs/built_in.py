"""The packs of the package: the files of `queries/reports`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from nsys_insight.packs.pack import parse
from nsys_insight.paths import queries_folder

if TYPE_CHECKING:
    from nsys_insight.packs.pack import Pack


def built_in() -> dict[str, Pack]:
    """All packs of the package by name, in alphabetical order."""
    return {name: _read(name) for name in built_in_names()}


@cache
def built_in_names() -> tuple[str, ...]:
    """Their names, for which no file is read."""
    return tuple(sorted(path.stem for path in (queries_folder() / "reports").glob("*.sql")))


def built_in_pack(name: str) -> Pack | None:
    """The pack of this name; the others are not read."""
    return _read(name) if name in built_in_names() else None


@cache
def _read(name: str) -> Pack:
    return parse(queries_folder() / "reports" / f"{name}.sql")
