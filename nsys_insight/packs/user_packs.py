"""The user's own packs: the `.sql` files in the folder that they keep them in, each a command like any other."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from nsys_insight.errors import InsightError
from nsys_insight.packs.built_in import built_in
from nsys_insight.packs.pack import Pack, parse
from nsys_insight.paths import user_folder

if TYPE_CHECKING:
    from pathlib import Path

_NAME = re.compile(r"[a-z][a-z0-9_-]*")
# The commands that are no packs; tests/test_architecture.py holds them against the command line's own list.
COMMANDS = frozenset(
    """baseline bench cache capture check convert demo diagnose diff experiment explore export fleet mcp ncu packs
    ptxas report run sass schema scrub shell skill sql""".split()  # noqa: SIM905 - easier to read than a list
)
_chosen: list[Path] = []


@dataclass(frozen=True)
class UserPacks:
    """The packs that can be used, by name, and what is wrong with the files that cannot."""

    packs: dict[str, Pack] = field(default_factory=dict)
    wrong: dict[Path, str] = field(default_factory=dict)


def use_folder(path: Path) -> None:
    """Read the user's packs from this folder, whatever the environment says."""
    _chosen[:] = [path]
    user_packs.cache_clear()


def folder() -> Path:
    """The folder of the user's packs: chosen, else ``$NSYS_INSIGHT_PACK_DIR``, else ``packs`` in the configuration."""
    return _chosen[0] if _chosen else user_folder("packs")


@cache
def user_packs() -> UserPacks:
    """Read the user's packs. A file that is no pack is put aside: no other command may fail for it."""
    found = UserPacks()
    for path in sorted(folder().glob("*.sql")):
        try:
            pack = parse(path)
        except InsightError as error:
            found.wrong[path] = error.message
            continue
        if reason := unusable(pack.name):
            found.wrong[path] = reason
        else:
            found.packs[pack.name] = pack
    return found


def unusable(name: str) -> str:
    """Say why a pack cannot have this name; empty if it can."""
    if not _NAME.fullmatch(name):
        return f"{name!r} cannot be a command: use lowercase letters, digits and dashes"
    if name in COMMANDS or any(name == pack.name or name in pack.aliases for pack in built_in().values()):
        return f"{name} is a command already: rename the file"
    return ""
