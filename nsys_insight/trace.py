"""The Python API: an opened trace with the reports as methods, SQL and the diagnosis."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import InsightError, UsageError
from nsys_insight.packs import library, step_options
from nsys_insight.session.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from nsys_insight.notebook.html import HtmlAnswer, HtmlDiagnosis
    from nsys_insight.notebook.picture import Picture
    from nsys_insight.packs.pack import Pack
    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.reports import Reports
else:
    Reports = object  # a stub: the methods are made from the reports' headers when they are asked for


class Trace(Session, Reports):
    """A trace, opened read-only, as notebooks and programs ask it.

    Every report is a method that returns a polars frame with raw values (ns, bytes, NULL for unknown):
    ``trace.top(group_by="family")``; ``help(trace.top)`` says what it counts. `run` does the same by name, `answer`
    returns the result with its notes and the meaning of its columns, `sql` takes any question over the views
    (`nsys-insight schema` lists them), `diagnose` says what bounds the run, and `scope` returns the same trace narrowed
    to a part of it. `timeline`, `idle_plot` and `roofline_plot` are pictures. It is opened as a `Session` is.
    """

    def run(self, report: str, **params: Any) -> pl.DataFrame:
        """Answer a report as a polars frame: ``trace.run("gaps", min_gap_ns=5000)``.

        What must be known beside the numbers goes to the `note` that the trace was opened with.
        """
        answer = super().answer(report, **params)
        for text in answer.notes:
            self._options["note"](text)
        return answer.frame()

    def answer(self, report: str | Pack, *, steps: StepOptions | None = None, **params: Any) -> HtmlAnswer:
        """Answer a report, with its notes and what its columns mean; notebooks show it as a table.

        Raises:
            UsageError: There is no such report, or a parameter is wrong.
        """
        from nsys_insight.notebook import html

        return html.answer(super().answer(report, steps=steps, **params))

    def query(self, query: str) -> HtmlAnswer:
        """Answer an SQL query over the model's views; notebooks show it as a table."""
        from nsys_insight.notebook import html

        return html.answer(super().query(query))

    def sql(self, query: str) -> pl.DataFrame:
        """Answer an SQL query over the model's views as a polars frame."""
        return self.query(query).frame()

    def diagnose(self, **options: Any) -> HtmlDiagnosis:
        """Say what bounds the run, what it costs, and what to do first; `options` are those of `StepOptions`.

        Raises:
            UsageError: An option is wrong, or several traces are open.
        """
        from nsys_insight.diagnose.diagnosis import diagnose
        from nsys_insight.notebook import html

        return html.diagnosis(diagnose(self, step_options.checked(options)))

    def timeline(self, step: int | None = None, **options: Any) -> Picture:
        """Draw a step, moment by moment: what the host did, what the GPUs did, and why they were idle.

        Args:
            step: The number of the step, as in `steps`; None is one that stands for the others, or where no steps are
                found, all that is in scope.
            **options: How steps are found: those of `StepOptions`.

        Raises:
            UsageError: There is no such step, nothing ran on a GPU, or several traces are open.
        """
        from nsys_insight.notebook import picture
        from nsys_insight.page.timeline import still

        self._refuse_pictures_of_several()
        drawn = still(self, step_options.checked(options), step)
        if drawn is None:
            raise UsageError("there is nothing to draw: no GPU work is in this scope", "narrow it less")
        return picture.timeline(drawn, self.path.name + ("" if drawn.step is None else f": step {drawn.step}"))

    def idle_plot(self) -> Picture:
        """Draw where the wall of each GPU goes: busy, or idle for which cause.

        Raises:
            UsageError: Nothing ran on a GPU, or several traces are open.
        """
        from nsys_insight.notebook import picture
        from nsys_insight.page import pictures

        self._refuse_pictures_of_several()
        found = pictures.idle(self.answer("idle"))
        if not found:
            raise UsageError("there is nothing to draw: no GPU work is in this scope", "narrow it less")
        return picture.stacks(
            found, f"{self.path.name}: where the wall time of {'each' if len(found) > 1 else 'the'} GPU goes"
        )

    def roofline_plot(self, limit: int = 12, **params: Any) -> Picture:
        """Draw kernels under the roofline of the GPU.

        Args:
            limit: How many kernels at most.
            **params: How much work they do, as for `roofline`: ``gemm="4096,4096,4096"``.

        Raises:
            UsageError: Of no kernel are the operations and the bytes known.
        """
        from nsys_insight.notebook.picture import Picture
        from nsys_insight.render import roofline

        self._refuse_pictures_of_several()
        return Picture(str(roofline.draw(self.answer("roofline", **params), ".svg", limit=limit, width=None)))

    def __getattr__(self, name: str) -> Callable[..., pl.DataFrame]:
        """Give every pack as a method.

        Raises:
            AttributeError: There is none of this name.
        """
        pack = None if name.startswith("_") else library.known().get(name.replace("_", "-"))
        if pack is None:
            from nsys_insight.text.near import did_you_mean

            hint = "" if name.startswith("_") else did_you_mean(name, dir(type(self)) + self._reports())
            message = f"{type(self).__name__!r} object has no attribute or report {name!r}{'; ' if hint else ''}{hint}"
            # Without the object Python has no suggestion of its own to add.
            raise AttributeError(message, name=name, obj=None)
        from nsys_insight.notebook import methods

        return methods.method(pack, self.run)

    def __dir__(self) -> list[str]:
        """Let a notebook complete the reports' names."""
        return [*super().__dir__(), *self._reports()]

    def _repr_html_(self) -> str:
        """Show in a notebook which trace this is, how it was captured, and its figures."""
        from nsys_insight.notebook import html

        try:
            return escape(repr(self)) if len(self.paths) > 1 else html.trace(self)
        except InsightError as error:
            return escape(f"{self!r}: {error.message}")

    def _refuse_pictures_of_several(self) -> None:
        self.refuse_several("a picture shows one trace", "open one of them")

    @staticmethod
    def _reports() -> list[str]:
        return [name.replace("-", "_") for name in library.known()]
