"""The Python API: an opened trace with the reports as methods, SQL and the diagnosis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_insight.packs import library, step_options
from nsys_insight.session.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from nsys_insight.diagnose.diagnosis import Diagnosis


class Trace(Session):
    """A trace, opened read-only, as notebooks and programs ask it.

    Every report is a method that returns a polars frame with raw values (ns, bytes, NULL for unknown):
    ``trace.top(group_by="family")``. `run` does the same by name, `answer` returns the result with its notes and the
    meaning of its columns, `sql` takes any question over the views (`nsys-insight schema` lists them), `diagnose` says
    what bounds the run, and `scope` returns the same trace narrowed to a part of it. It is opened as a `Session` is.
    """

    def run(self, report: str, **params: Any) -> pl.DataFrame:
        """Answer a report as a polars frame: ``trace.run("gaps", min_gap_ns=5000)``.

        What must be known beside the numbers goes to the `note` that the trace was opened with.
        """
        answer = self.answer(report, **params)
        for text in answer.notes:
            self._options["note"](text)
        return answer.frame()

    def sql(self, query: str) -> pl.DataFrame:
        """Answer an SQL query over the model's views as a polars frame."""
        return self.query(query).frame()

    def diagnose(self, **options: Any) -> Diagnosis:
        """Say what bounds the run, what it costs, and what to do first; `options` are those of `StepOptions`.

        Raises:
            UsageError: An option is wrong, or several traces are open.
        """
        from nsys_insight.diagnose.diagnosis import diagnose

        return diagnose(self, step_options.checked(options))

    def __getattr__(self, name: str) -> Callable[..., pl.DataFrame]:
        """Give every pack as a method."""
        if name.startswith("_") or name.replace("_", "-") not in library.known():
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return lambda **params: self.run(name, **params)

    def __dir__(self) -> list[str]:
        """Let a notebook complete the reports' names."""
        return [*super().__dir__(), *(name.replace("-", "_") for name in library.known())]
