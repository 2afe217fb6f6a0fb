"""Classes of instructions, from `queries/catalog/sass_classes.toml`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from nsys_insight.paths import queries_folder

if TYPE_CHECKING:
    from nsys_insight.kernel_code.instructions import Instruction

UNKNOWN = "unknown"


def class_of(one: Instruction) -> str:
    """The class of an instruction; `UNKNOWN` for a mnemonic that the catalog does not have."""
    return "move" if one.is_move else _classes().get(one.mnemonic, UNKNOWN)


@cache
def multiply_adds() -> frozenset[str]:
    """The classes that count as computing where computing is compared with loading."""
    return frozenset(one["class"] for one in _catalog() if one.get("multiply_add"))


@cache
def about() -> dict[str, str]:
    """What each class does, in the order of the catalog."""
    return {one["class"]: one["about"] for one in _catalog()} | {UNKNOWN: "Mnemonics that are not in the catalog"}


@cache
def _classes() -> dict[str, str]:
    return {mnemonic: one["class"] for one in _catalog() for mnemonic in one["mnemonics"]}


@cache
def _catalog() -> list[dict[str, Any]]:
    import tomllib

    text = (queries_folder() / "catalog" / "sass_classes.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["classes"]  # type: ignore[no-any-return]
