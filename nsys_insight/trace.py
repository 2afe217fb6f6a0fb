"""The Python API: an open trace, with reports as methods, SQL and the diagnosis."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import InsightError, UsageError
from nsys_insight.packs import library, step_options
from nsys_insight.packs.flag_texts import naming_parameters
from nsys_insight.session.session import Session
from nsys_insight.text.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from nsys_insight.notebook.diagnosis import HtmlDiagnosis
    from nsys_insight.notebook.html import HtmlAnswer
    from nsys_insight.notebook.picture import Picture
    from nsys_insight.packs.pack import Pack
    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.reports import Reports
else:
    Reports = object  # type checkers use a stub; at run time, `__getattr__` makes the methods from the report headers

# The attributes of `Session` that are for users.
_INHERITED = ("close", "dicts", "labels", "path", "paths", "rows", "scope")


class Trace(Session, Reports):
    """A trace, opened read-only, for notebooks and programs.

    Every report is a method that returns a polars frame with raw values (ns, bytes, NULL for unknown):
    ``trace.top(group_by="family")``; ``help(trace.top)`` describes it. `run` does the same by name. `answer` returns
    the result with its notes and the descriptions of its columns. `sql` answers a query over the views (`nsys-insight
    schema` lists them). `diagnose` finds what bounds the run. `scope` returns the same trace, narrowed to a part of it.
    `timeline`, `idle_plot` and `roofline_plot` draw pictures. The arguments are those of `Session`.
    """

    def run(self, report: str, **params: Any) -> pl.DataFrame:
        """Answer a report as a polars frame: ``trace.run("gaps", min_gap_ns=5000)``.

        The notes of the answer go to the trace's `note` callback.
        """
        with naming_parameters():
            answer = super().answer(report, **params)
        for text in answer.notes:
            self._options["note"](text)
        return answer.frame()

    def answer(self, report: str | Pack, *, steps: StepOptions | None = None, **params: Any) -> HtmlAnswer:
        """Answer a report, with its notes and the descriptions of its columns; notebooks show it as a table.

        Raises:
            UsageError: There is no such report, or a parameter is wrong.
        """
        from nsys_insight.notebook import html

        with naming_parameters():
            return html.make_html_answer(super().answer(report, steps=steps, **params))

    def query(self, query: str) -> HtmlAnswer:
        """Answer an SQL query over the model's views; notebooks show it as a table."""
        from nsys_insight.notebook import html

        return html.make_html_answer(super().query(query))

    def sql(self, query: str) -> pl.DataFrame:
        """Answer an SQL query over the model's views as a polars frame."""
        return self.query(query).frame()

    def diagnose(self, **options: Any) -> HtmlDiagnosis:
        """Find what bounds the run, what it costs, and what to do first; `options` are those of `StepOptions`.

        Raises:
            UsageError: An option is wrong, or several traces are open.
        """
        from nsys_insight.diagnose.diagnosis import diagnose
        from nsys_insight.notebook.diagnosis import make_html_diagnosis

        with naming_parameters():
            return make_html_diagnosis(diagnose(self, step_options.parse_options(options)))

    def timeline(self, step: int | None = None, **options: Any) -> Picture:
        """Draw a step over time: the work of the host, the work of the GPUs, and why the GPUs were idle.

        Args:
            step: The number of the step, as in `steps`. None draws a representative step, or everything in scope if no
                steps are found.
            **options: How steps are found: the options of `StepOptions`.

        Raises:
            UsageError: There is no such step, nothing ran on a GPU, or several traces are open.
        """
        from nsys_insight.notebook import picture
        from nsys_insight.page.timeline import draw_still

        self._refuse_pictures_of_several()
        with naming_parameters():
            drawing = draw_still(self, step_options.parse_options(options), step)
        if drawing is None:
            raise UsageError("there is nothing to draw: no GPU work is in this scope", "narrow it less")
        return picture.draw_timeline(
            drawing, self.path.name + ("" if drawing.step is None else f": step {drawing.step}")
        )

    def idle_plot(self) -> Picture:
        """Draw how each GPU spends the wall time: busy, or idle by cause.

        Raises:
            UsageError: Nothing ran on a GPU, or several traces are open.
        """
        from nsys_insight.notebook import picture
        from nsys_insight.page import pictures

        self._refuse_pictures_of_several()
        stacks = pictures.draw_idle(self.answer("idle"))
        if not stacks:
            raise UsageError("there is nothing to draw: no GPU work is in this scope", "narrow it less")
        return picture.draw_stacks(
            stacks, f"{self.path.name}: where the wall time of {'each' if len(stacks) > 1 else 'the'} GPU goes"
        )

    def roofline_plot(self, limit: int = 12, **params: Any) -> Picture:
        """Draw kernels under the roofline of the GPU.

        Args:
            limit: The maximum number of kernels.
            **params: The work of the kernels, as for `roofline`: ``gemm="4096,4096,4096"``.

        Raises:
            UsageError: The operations and bytes are not known for any kernel.
        """
        from nsys_insight.notebook.picture import Picture
        from nsys_insight.render import roofline

        self._refuse_pictures_of_several()
        with naming_parameters():
            return Picture(str(roofline.draw(self.answer("roofline", **params), ".svg", limit=limit, width=None)))

    if not TYPE_CHECKING:  # the stub has the methods; this would accept every name

        def __getattr__(self, name: str) -> Callable[..., pl.DataFrame]:
            """Return the method of the report with this name.

            Raises:
                AttributeError: There is no such report.
            """
            pack = None if name.startswith("_") else library.all_packs().get(name.replace("_", "-"))
            if pack is None:
                hint = (
                    ""
                    if name.startswith("_")
                    else did_you_mean(name, [other for other in dir(self) if not other.startswith("_")])
                )
                message = (
                    f"{type(self).__name__!r} object has no attribute or report {name!r}{'; ' if hint else ''}{hint}"
                )
                # Without the object, Python does not add a suggestion of its own.
                raise AttributeError(message, name=name, obj=None)
            from nsys_insight.notebook import methods

            return methods.make_method(pack, self.run)

    def __dir__(self) -> list[str]:
        """List what notebooks complete: the attributes of the API and the report names, not the program's own."""
        own_names = {*vars(Trace), *_INHERITED}
        return [
            *(name for name in super().__dir__() if name in own_names or name.startswith("_")),
            *self._reports(),
        ]

    def _repr_html_(self) -> str:
        """Show the trace in a notebook: how it was captured, and its key figures."""
        from nsys_insight.notebook import html

        try:
            return escape(repr(self)) if len(self.paths) > 1 else html.render_trace(self)
        except InsightError as error:
            return escape(f"{self!r}: {error.message}")

    def _refuse_pictures_of_several(self) -> None:
        self.refuse_several("a picture shows one trace", "open one of them")

    @staticmethod
    def _reports() -> list[str]:
        return [name.replace("-", "_") for name in library.all_packs()]
