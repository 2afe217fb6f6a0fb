"""Rules: one `.sql` file each, whose opening comment says in TOML what it looks for, what to do, and its thresholds.

The findings of a diagnosis (`queries/findings`) are rules, and what follows from Nsight Compute's metrics
(`queries/ncu_rules`); each kind adds what its files say besides.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from nsys_insight.errors import UsageError
from nsys_insight.paths import queries_folder
from nsys_insight.sql.headers import flow, split
from nsys_insight.sql.parameters import bind

if TYPE_CHECKING:
    from pathlib import Path

# How much a finding matters, the most first.
SEVERITIES = ("critical", "warning", "info")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What the files of every kind say."""

    name: str
    title: str
    sql: str
    params: dict[str, Any]
    severity: str = "info"

    def statement(self, **values: object) -> str:
        """Return the SQL with its thresholds written in, and `values` for its other parameters."""
        return bind(self.sql, {**values, **self.params})


R = TypeVar("R", bound=Rule)


@cache
def rules_of(folder: str, kind: type[R]) -> tuple[R, ...]:
    """All rules of a folder of `queries`, in alphabetical order.

    Raises:
        UsageError: The header of one is missing or not complete.
    """
    return tuple(parse(path, kind) for path in sorted((queries_folder() / folder).glob("*.sql")))


def parse(path: Path, kind: type[R]) -> R:
    """Read a rule's file; the tables of its header beside `[params]` are fields of the kind.

    Raises:
        UsageError: Its header is missing or not complete.
    """
    header, sql = split(path.read_text(encoding="utf-8"))
    try:
        facts = tomllib.loads(header or "")
        params = {name: entry["default"] for name, entry in facts.pop("params", {}).items()}
        unknown = facts.keys() - {field.name for field in fields(kind)}
        if unknown:
            raise KeyError(f"nothing is called {min(unknown)}")  # noqa: TRY301 - one sentence for all that may be wrong
        rule = kind(name=path.stem, sql=sql, params=params, **{name: _flowing(fact) for name, fact in facts.items()})
        SEVERITIES.index(rule.severity)
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(f"the header of {path.name} is not complete: {error}") from None
    return rule


def _flowing(fact: Any) -> Any:
    """Put the lines of each text into one, and make lists what does not change."""
    if isinstance(fact, str):
        return flow(fact)
    if isinstance(fact, dict):
        return {name: _flowing(each) for name, each in fact.items()}
    return tuple(fact) if isinstance(fact, list) else fact
