"""Which rules a diagnosis uses: chosen by code, group of codes or name, on the command line or in a project's file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsys_insight.diagnose.findings import FindingRule, read_finding_rules
from nsys_insight.errors import UsageError
from nsys_insight.packs.rules import SEVERITIES
from nsys_insight.paths import is_of_another_user, list_project_folders
from nsys_insight.records import parse_toml
from nsys_insight.text.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


SETTINGS_FILE = "nsys-insight.toml"


@dataclass(frozen=True)
class RuleChoice:
    """The rules to use: those that `select` names (all if it is empty), without those that `ignore` names.

    A rule is named by its code (NSI201), the start of a code (NSI2, also written NSI2xx), or its name (d2h-sync).
    `file` is the settings file that has the names, if one has. `notes` name the settings files that were not read.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    file: Path | None = None
    notes: tuple[str, ...] = ()

    def filter(self, rules: Iterable[FindingRule]) -> list[FindingRule]:
        """Return the rules to use, in their order."""
        return [
            rule
            for rule in rules
            if (not self.select or matches_any(rule, self.select)) and not matches_any(rule, self.ignore)
        ]


def make_choice(select: Iterable[str], ignore: Iterable[str]) -> RuleChoice:
    """Make a choice from lists of names. An item of a list may have several names, separated by commas.

    Raises:
        UsageError: A name is that of no rule.
    """
    return RuleChoice(split_names(select, "--select"), split_names(ignore, "--ignore"))


def split_names(lists: Iterable[str], source: str) -> tuple[str, ...]:
    """Split lists of names at commas, and check each; `source` is where they come from, for the error.

    Raises:
        UsageError: A name is that of no rule.
    """
    names = tuple(name.strip() for text in lists for name in text.split(",") if name.strip())
    rules = read_finding_rules()
    for name in names:
        if not any(matches_any(rule, (name,)) for rule in rules):
            candidates = [*(rule.code for rule in rules), *(rule.name for rule in rules)]
            hint = "nsys-insight rule lists them; NSI stands for all" if name in SEVERITIES else ""
            raise UsageError(
                f"{source}: no rule is {name!r}", hint or did_you_mean(name, candidates) or "nsys-insight rule"
            )
    return names


def matches_any(rule: FindingRule, names: Sequence[str]) -> bool:
    """Return whether a rule has one of these names, codes or starts of codes."""
    return any(rule.name == name or rule.code.startswith(re.sub("X+$", "", name.upper())) for name in names)


def read_project_choice(folder: Path | None = None) -> RuleChoice:
    """Read the choice of the project: `select` and `ignore` of the table `[diagnose]` in `nsys-insight.toml`.

    The file is searched in a folder (the working folder by default) and in those above it, up to the root of the
    repository or the home folder (`list_project_folders`). A file of another user is not read, and a note says so: it
    could hide findings. Without a file, all rules apply.

    Raises:
        UsageError: The file is not valid, or names no rule.
    """
    notes = []
    for place in list_project_folders(folder):
        path = place / SETTINGS_FILE
        if not path.is_file():
            continue
        try:
            with path.open(encoding="utf-8-sig") as file:
                if is_of_another_user(path, file.fileno()):
                    notes.append(f"{path} belongs to another user and is not read; --select and --ignore choose rules")
                    continue
                names = _parse_names(file.read())
        except (OSError, ValueError, AttributeError, TypeError) as error:
            raise UsageError(f"{path} is not valid: {error}", '[diagnose]\nignore = ["NSI402"]') from None
        select, ignore = (split_names(names[key], f"{path}: {key}") for key in ("select", "ignore"))
        return RuleChoice(select, ignore, path, tuple(notes))
    return RuleChoice(notes=tuple(notes))


def _parse_names(text: str) -> dict[str, list[str]]:
    """Parse a settings file into its lists of names.

    Raises:
        ValueError: The table has another entry, or a list has something other than names.
    """
    table = parse_toml(text).get("diagnose", {})
    lists = {name: table.get(name, []) for name in ("select", "ignore")}
    unknown = sorted(set(table) - set(lists))
    if unknown or not all(isinstance(name, str) for names in lists.values() for name in names):
        raise ValueError(f"[diagnose] has {unknown[0]}" if unknown else "select and ignore are lists of codes")
    return lists
