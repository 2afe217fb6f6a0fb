"""Queries of the page's pictures: the statements in `queries/internal/page`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from nsys_insight.paths import read_query
from nsys_insight.sql.parameters import bind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.session import Session


def ask(trace: Session, name: str, steps: StepOptions, **values: Any) -> list[Any]:
    """Run the statement of this name and return its rows. `steps` says how steps are found."""
    return ask_each(trace, steps, {name: values})[0]


def ask_each(trace: Session, steps: StepOptions, values_by_query: Mapping[str, dict[str, Any]]) -> list[list[Any]]:
    """Run several statements, each with its values, and return the rows of each."""
    statements = bind_queries(values_by_query)
    if len(statements) > 1:
        trace.prefetch((), statements, steps)
    return [trace.rows(statement, steps, is_built_in=True) for statement in statements]


def bind_queries(values_by_query: Mapping[str, dict[str, Any]]) -> list[str]:
    """Return the statements of these names, each with its values."""
    return [bind(_read_statement(name), values) for name, values in values_by_query.items()]


@cache
def _read_statement(name: str) -> str:
    return read_query(f"internal/page/{name}")
