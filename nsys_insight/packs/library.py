"""All packs: those of the package by name and topic, and the user's own."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.errors import InsightError, UsageError
from nsys_insight.packs.pack import Pack, parse_pack
from nsys_insight.paths import package_folder, queries_folder, user_folder
from nsys_insight.text.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME = re.compile(r"[a-z][a-z0-9_-]*")
# The declaration of a command in a module of the command line.
_COMMAND = re.compile(r'^\w+ = Command\(\s*"([a-z][a-z0-9-]*)"', re.MULTILINE)


class Topic(NamedTuple):
    """A group of reports; `summary` is one sentence on what they are about."""

    name: str
    title: str
    summary: str


@dataclass(frozen=True)
class UserPacks:
    """The user's packs that can be used, by name, and the error of each file that cannot be."""

    packs: dict[str, Pack] = field(default_factory=dict)
    errors: dict[Path, str] = field(default_factory=dict)


def find_pack(name: str) -> Pack | None:
    """Find the pack with this name or alias, of the package or the user; read other packs only if necessary."""
    if pack := built_in_pack(name):
        return pack
    aliases = {alias: pack for pack in built_in_packs().values() for alias in pack.aliases}
    return aliases.get(name) or user_packs().packs.get(name)


def all_packs() -> dict[str, Pack]:
    """Return all packs by name, those of the package and the user's own."""
    return built_in_packs() | user_packs().packs


def get_pack(name: str) -> Pack:
    """Return the pack with this name or alias, or in this file; underscores may replace dashes.

    Raises:
        UsageError: There is no such pack.
    """
    if name.endswith(".sql"):
        return parse_pack(Path(name))
    if pack := find_pack(name) or find_pack(name.replace("_", "-")):
        return pack
    packs = all_packs()
    hint = did_you_mean(name.replace("_", "-"), packs) or f"reports: {', '.join(packs)}"
    raise UsageError(f"there is no report {name!r}", hint)


def choose_pack(pack: Pack, params: Mapping[str, Any]) -> tuple[Pack, dict[str, Any]]:
    """Return the pack that answers, with its parameters: a parameter may be that of another pack (`report`).

    Raises:
        UsageError: Another parameter does not go with it.
    """
    for name, param in pack.params.items():
        if not param.report or params.get(name) is None:
            continue
        other_pack = get_pack(param.report)
        dropped = {key: pack.params[key] for key in params if key in pack.params and key not in other_pack.params}
        for key, other in dropped.items():
            if params[key] not in (None, other.default):
                hint = f"nsys-insight {other_pack.name} --help"
                raise UsageError(f"{other.flag} does not go with {param.flag}", hint)
        return other_pack, {key: value for key, value in params.items() if key not in dropped}
    return pack, dict(params)


def built_in_packs() -> dict[str, Pack]:
    """Return all packs of the package by name, in alphabetical order."""
    return {name: _read(name) for name in built_in_names()}


@cache
def built_in_names() -> tuple[str, ...]:
    """Return the names of the package's packs without reading their files."""
    return tuple(sorted(path.stem for path in (queries_folder() / "reports").glob("*.sql")))


def built_in_pack(name: str) -> Pack | None:
    """Return the package's pack with this name without reading the others; None if there is no such pack."""
    return _read(name) if name in built_in_names() else None


@cache
def _read(name: str) -> Pack:
    return parse_pack(queries_folder() / "reports" / f"{name}.sql")


@cache
def topics() -> dict[str, Topic]:
    """Return the topics by name, in the order of `queries/reports/topics.toml`."""
    text = (queries_folder() / "reports" / "topics.toml").read_text(encoding="utf-8")
    return {name: Topic(name, entry["title"], entry["about"]) for name, entry in tomllib.loads(text).items()}


def packs_by_topic() -> dict[Topic, list[Pack]]:
    """Return the packs of the package by topic, both in their order."""
    packs = sorted(built_in_packs().values(), key=lambda pack: (pack.position, pack.name))
    return {topic: [pack for pack in packs if pack.topic == topic.name] for topic in topics().values()}


def user_packs_folder() -> Path:
    """Return the folder of the user's packs: ``$NSYS_INSIGHT_PACK_DIR``, or ``packs`` in the configuration."""
    return user_folder("packs")


@cache
def user_packs() -> UserPacks:
    """Read the user's packs. Record the error of an invalid file, so that no other command fails because of it."""
    library = UserPacks()
    for path in sorted(user_packs_folder().glob("*.sql")):
        try:
            pack = parse_pack(path)
        except InsightError as error:
            library.errors[path] = error.message
            continue
        if reason := explain_unusable(pack.name):
            library.errors[path] = reason
        else:
            library.packs[pack.name] = pack
    return library


def explain_unusable(name: str) -> str:
    """Explain why a pack cannot have this name; "" if it can."""
    if not _NAME.fullmatch(name):
        return f"{name!r} cannot be a command: use lowercase letters, digits and dashes"
    if name in command_files() or any(name == pack.name or name in pack.aliases for pack in built_in_packs().values()):
        return f"{name} is a command already: rename the file"
    return ""


@cache
def command_files() -> dict[str, Path]:
    """Return the modules that declare commands, by command. Search their text, so that no module is imported."""
    modules = sorted((package_folder() / "cli" / "commands").glob("*.py"))
    return {name: path for path in modules for name in _COMMAND.findall(path.read_text(encoding="utf-8"))}
