"""Questions that only the report's pictures ask: the statements of `queries/report`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from nsys_insight.packs import bind
from nsys_insight.paths import query

if TYPE_CHECKING:
    from nsys_insight.trace import Trace


def ask(trace: Trace, name: str, asked: dict[str, Any], **values: Any) -> list[tuple[Any, ...]]:
    """Run the statement of this name; `asked` are the options by which steps are told."""
    return trace.rows(bind(_statement(name), values), **asked)


@cache
def _statement(name: str) -> str:
    return query(f"report/{name}")
