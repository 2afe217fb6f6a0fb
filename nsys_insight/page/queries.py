"""Questions that only the page's pictures ask: the statements of `queries/internal/page`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from nsys_insight.paths import query
from nsys_insight.sql.parameters import bind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.session import Session


def ask(trace: Session, name: str, steps: StepOptions, **values: Any) -> list[Any]:
    """Run the statement of this name; steps are found as the options say."""
    return ask_each(trace, steps, {name: values})[0]


def ask_each(trace: Session, steps: StepOptions, asked: Mapping[str, dict[str, Any]]) -> list[list[Any]]:
    """Run several statements, each with its values, and give the rows of each."""
    statements = bound(asked)
    if len(statements) > 1:
        trace.ahead((), statements, steps)
    return [trace.rows(statement, steps) for statement in statements]


def bound(asked: Mapping[str, dict[str, Any]]) -> list[str]:
    """The statements of these names, each with its values."""
    return [bind(_statement(name), values) for name, values in asked.items()]


@cache
def _statement(name: str) -> str:
    return query(f"internal/page/{name}")
