"""Rules: one per `.sql` file, with a TOML header that states the problem, the remedy, and thresholds.

There are two kinds: the findings of a diagnosis (`queries/findings`), and findings from the metrics of Nsight Compute
(`queries/ncu_rules`). Each kind adds fields to the header.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from nsys_insight.errors import UsageError
from nsys_insight.paths import queries_folder
from nsys_insight.records import parse_toml
from nsys_insight.sql.headers import join_lines, split_header
from nsys_insight.sql.parameters import bind

if TYPE_CHECKING:
    from pathlib import Path

# From the most to the least severe.
SEVERITIES = ("critical", "warning", "info")
# Keys of headers that differ from the fields, which keep the names of the JSON.
_FIELDS = {"fix": "cure", "skip_if": "caveat"}


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule, with the fields that all kinds have: its thresholds are `params`, explained in `param_help`."""

    name: str
    title: str
    sql: str
    params: dict[str, Any]
    param_help: dict[str, str]
    severity: str = "info"

    def statement(self, **values: object) -> str:
        """Return the SQL with its thresholds, and with `values` for its other parameters."""
        return bind(self.sql, {**values, **self.params})


R = TypeVar("R", bound=Rule)


@cache
def read_rules(folder: str, kind: type[R]) -> tuple[R, ...]:
    """Read all rules of a folder of `queries`, in alphabetical order.

    Raises:
        UsageError: The header of a rule is missing or incomplete.
    """
    return tuple(parse_rule(path, kind) for path in sorted((queries_folder() / folder).glob("*.sql")))


def parse_rule(path: Path, kind: type[R]) -> R:
    """Read the file of a rule; all entries of its header except `[params]` are fields of the kind.

    An entry of `[params]` is a threshold: its value, and what it stands for.

    Raises:
        UsageError: The header is missing or incomplete.
    """
    header, sql = split_header(path.read_text(encoding="utf-8"))
    try:
        facts = {_FIELDS.get(key, key): value for key, value in parse_toml(header or "").items()}
        entries = facts.pop("params", {})
        params = {name: default for name, (default, _) in entries.items()}
        param_help = {name: join_lines(text) for name, (_, text) in entries.items()}
        unknown = facts.keys() - {field.name for field in fields(kind)}
        if unknown:
            raise KeyError(f"there is no field {min(unknown)}")  # noqa: TRY301 - one handler for all errors
        header_fields = {name: _normalize(fact) for name, fact in facts.items()}
        rule = kind(name=path.stem, sql=sql, params=params, param_help=param_help, **header_fields)
        SEVERITIES.index(rule.severity)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"the header of {path.name} is not complete: {error}") from None
    return rule


def _normalize(fact: Any) -> Any:
    """Join the lines of each text into one, and turn lists into tuples."""
    if isinstance(fact, str):
        return join_lines(fact)
    if isinstance(fact, dict):
        return {name: _normalize(value) for name, value in fact.items()}
    return tuple(map(_normalize, fact)) if isinstance(fact, list) else fact
