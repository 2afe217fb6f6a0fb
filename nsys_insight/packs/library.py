"""All packs: those of the package by name and topic, and the user's own."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from nsys_insight.errors import InsightError, UsageError
from nsys_insight.packs.pack import Pack, parse
from nsys_insight.paths import package_folder, queries_folder, user_folder
from nsys_insight.text.near import did_you_mean

_NAME = re.compile(r"[a-z][a-z0-9_-]*")
# How a module of the command line declares a command.
_DECLARED = re.compile(r'^\w+ = Command\(\s*"([a-z][a-z0-9-]*)"', re.MULTILINE)
_chosen: list[Path] = []


class Topic(NamedTuple):
    """Reports that belong together; `about` is one sentence on what they are about."""

    name: str
    title: str
    about: str


@dataclass(frozen=True)
class UserPacks:
    """The packs that can be used, by name, and what is wrong with the files that cannot."""

    packs: dict[str, Pack] = field(default_factory=dict)
    wrong: dict[Path, str] = field(default_factory=dict)


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


@cache
def topics() -> dict[str, Topic]:
    """The topics by name, in the order of `queries/reports/topics.toml`."""
    text = (queries_folder() / "reports" / "topics.toml").read_text(encoding="utf-8")
    return {name: Topic(name, entry["title"], entry["about"]) for name, entry in tomllib.loads(text).items()}


def by_topic() -> dict[Topic, list[Pack]]:
    """The packs of the package by topic, both in their order."""
    packs = sorted(built_in().values(), key=lambda pack: (pack.place, pack.name))
    return {topic: [pack for pack in packs if pack.topic == topic.name] for topic in topics().values()}


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
    if name in command_files() or any(name == pack.name or name in pack.aliases for pack in built_in().values()):
        return f"{name} is a command already: rename the file"
    return ""


@cache
def command_files() -> dict[str, Path]:
    """The commands by name, with the modules that declare them; found in their texts, so that none is imported."""
    modules = sorted((package_folder() / "cli" / "commands").glob("*.py"))
    return {name: path for path in modules for name in _DECLARED.findall(path.read_text(encoding="utf-8"))}
