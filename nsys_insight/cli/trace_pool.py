"""Traces that stay open between the questions of one client, so that a second question does not open them again."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from nsys_insight.errors import InsightError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nsys_insight.diagnose.diagnosis import Diagnosis
    from nsys_insight.ingest.scope import Scope
    from nsys_insight.trace import Trace

# Each open trace occupies memory, and each answer stays in it until it is closed.
_MAX_OPEN, _MAX_QUESTIONS = 3, 100


@dataclass
class PooledTrace:
    """An open trace. `notes` are those of opening it and of the question; `diagnosis` is there once it was made."""

    trace: Trace
    notes: list[str]
    opening_notes: list[str]
    questions: int = 0
    diagnosis: Diagnosis | None = None


class TracePool:
    """Open traces by path and scope, the one used last at the end. The cache folder is not used.

    At most three stay open. One is closed if its file changes, after a hundred questions, and if a question about it
    fails. Use it as a context manager: all are closed at its end.
    """

    def __init__(self, timeout_s: float | None) -> None:
        """Take the time limit of a query."""
        self._timeout_s = timeout_s
        self._open: OrderedDict[tuple[Path, Scope], PooledTrace] = OrderedDict()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all traces."""
        while self._open:
            self._open.popitem()[1].trace.close()

    @contextmanager
    def open(self, path: Path, scope: Scope, *, is_shared: bool = True) -> Iterator[PooledTrace]:
        """Yield a trace in a scope; `is_shared` says whether it may stay open.

        Raises:
            TraceError: The file cannot be read.
        """
        pooled = self._take(path, scope) if is_shared else None
        with ExitStack() as stack:
            pooled = pooled or self._open_new(path, scope)
            stack.callback(pooled.trace.close)
            pooled.notes[:] = pooled.opening_notes
            pooled.questions += 1
            yield pooled
            if is_shared and pooled.questions < _MAX_QUESTIONS:
                stack.pop_all()
                self._keep((path, scope), pooled)

    def _keep(self, key: tuple[Path, Scope], pooled: PooledTrace) -> None:
        if key in self._open:  # both sides of a comparison are this trace
            pooled.trace.close()
            return
        self._open[key] = pooled
        while len(self._open) > _MAX_OPEN:
            self._open.popitem(last=False)[1].trace.close()

    def _take(self, path: Path, scope: Scope) -> PooledTrace | None:
        """Take the open trace out of the list, if its files are still those that were opened."""
        if pooled := self._open.pop((path, scope), None):
            with suppress(InsightError):
                pooled.trace.refuse_changed_files()
                return pooled
            pooled.trace.close()
        return None

    def _open_new(self, path: Path, scope: Scope) -> PooledTrace:
        from nsys_insight.trace import Trace

        notes: list[str] = []
        trace = Trace(path, scope=scope, use_cache=False, timeout_s=self._timeout_s, note=notes.append)
        return PooledTrace(trace, notes, list(notes))
