"""All packs by name: those of the package, and the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight.errors import UsageError
from nsys_insight.packs.built_in import built_in, built_in_pack
from nsys_insight.packs.pack import parse
from nsys_insight.packs.user_packs import user_packs
from nsys_insight.text.near import did_you_mean

if TYPE_CHECKING:
    from nsys_insight.packs.pack import Pack


def named(name: str) -> Pack | None:
    """The pack of the package, else the user's, with this name or alias; the others are not read if it need not be."""
    if pack := built_in_pack(name):
        return pack
    aliases = {alias: pack for pack in built_in().values() for alias in pack.aliases}
    return aliases.get(name) or user_packs().packs.get(name)


def known() -> dict[str, Pack]:
    """All packs of the package and the user's own by name."""
    return built_in() | user_packs().packs


def pack_of(name: str) -> Pack:
    """Return the pack with this name or alias, or in this file; underscores may stand for dashes.

    Raises:
        UsageError: There is none.
    """
    if name.endswith(".sql"):
        return parse(Path(name))
    if pack := named(name) or named(name.replace("_", "-")):
        return pack
    packs = known()
    hint = did_you_mean(name.replace("_", "-"), packs) or f"reports: {', '.join(packs)}"
    raise UsageError(f"there is no report {name!r}", hint)
