"""Traces as tests ask them: one of the repository is opened once for all tests of a process, which change nothing."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from oracle import lasts

import nsys_insight
from nsys_insight.ingest.scope import WHOLE_TRACE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nsys_insight.ingest.scope import Scope
    from nsys_insight.trace import Trace


@contextmanager
def open_trace(path: Path | str, **scope: Any) -> Iterator[Trace]:
    """Give a trace in a scope; one that a test wrote is its own, and closed after it."""
    part = WHOLE_TRACE.narrowed(**scope)
    if lasts(path):
        yield _once(path, part)
        return
    with nsys_insight.open(path, scope=part) as trace:
        yield trace


@cache
def _once(path: Path | str, part: Scope) -> Trace:
    return nsys_insight.open(path, scope=part, use_cache=False)
