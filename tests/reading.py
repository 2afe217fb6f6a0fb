"""Traces that tests read and nobody changes: each is opened once in a process, for opening takes longer than asking."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from pathlib import Path

import nsys_insight

REPOSITORY = Path(__file__).parents[1]
UNCHANGED = (REPOSITORY / "sample_traces", REPOSITORY.parent / "shared")


@contextmanager
def reading(path, **scope):
    """Give a trace in a scope; one that a test wrote is opened and closed, one of the samples stays open."""
    if any(folder in Path(path).parents for folder in UNCHANGED):
        yield _open(path, tuple(scope.items()))
    else:
        with nsys_insight.open(path).scope(**scope) as trace:
            yield trace


@functools.cache
def _open(path, scope):
    return _open(path, ()).scope(**dict(scope)) if scope else nsys_insight.open(path, use_cache=False)
