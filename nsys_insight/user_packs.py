"""The user's own packs: the `.sql` files in the folders that they keep them in, each a command like any other."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from nsys_insight import packs
from nsys_insight.errors import InsightError
from nsys_insight.paths import user_folder

FOLDER_VARIABLE = "NSYS_INSIGHT_PACK_DIR"
_NAME = re.compile(r"[a-z][a-z0-9_-]*")


@dataclass(frozen=True)
class Found:
    """The packs that can be used, by name, and what is wrong with the files that cannot."""

    packs: dict[str, packs.Pack] = field(default_factory=dict)
    wrong: dict[Path, str] = field(default_factory=dict)


def folder() -> Path:
    """The folder of the user's packs: ``$NSYS_INSIGHT_PACK_DIR``, else ``packs`` in the user's configuration."""
    return user_folder("packs")


@cache
def load() -> Found:
    """Read the user's packs. A file that is no pack is put aside: no other command may fail for it."""
    found = Found()
    for path in sorted(folder().glob("*.sql")):
        try:
            pack = packs.parse(path)
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
        return f"{name!r} cannot be a command: use small letters, digits and dashes"
    from nsys_insight.commands import COMMANDS

    if name in COMMANDS or name in packs.built_in() or any(name in pack.aliases for pack in packs.built_in().values()):
        return f"{name} is a command already: rename the file"
    return ""
