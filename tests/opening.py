"""Traces as tests ask them.

One of the repository, or a planted loop, is opened once for all tests of a process, which change nothing.
"""

from __future__ import annotations

import atexit
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import planted
from oracle import lasts

import nsys_insight
from nsys_insight.ingest.scope import WHOLE_TRACE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsys_insight.ingest.scope import Scope
    from nsys_insight.trace import Trace


@contextmanager
def open_trace(path: Path | str, **scope: Any) -> Iterator[Trace]:
    """Give a trace in a scope; one that a test wrote is its own, and closed after it."""
    part = WHOLE_TRACE.narrowed(**scope)
    if lasts(path) or Path(path).parent in _planted_folders():
        yield _once(path, part)
        return
    with nsys_insight.open(path, scope=part) as trace:
        yield trace


@cache
def planted_path(name: str) -> Path:
    """Write one of `planted.ALL` once."""
    return planted.ALL[name]().write(_planted_folder() / f"{name}.sqlite")


def _planted_folders() -> list[Path]:
    return [_planted_folder()] if _planted_folder.cache_info().currsize else []


@cache
def _planted_folder() -> Path:
    folder = TemporaryDirectory(prefix="planted-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


@cache
def _once(path: Path | str, part: Scope) -> Trace:
    return nsys_insight.open(path, scope=part, use_cache=False)
