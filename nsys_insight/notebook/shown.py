"""A trace, an answer and a diagnosis as notebooks show them: the page's own parts, without scripts."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from nsys_insight.diagnose.diagnosis import Diagnosis
from nsys_insight.session.answer import Answer

if TYPE_CHECKING:
    from nsys_insight.session.session import Session

# Rows that are shown of an answer.
ROWS = 20


class ShownAnswer(Answer):
    """An answer that notebooks show as a table, with its notes."""

    def _repr_html_(self) -> str:
        from nsys_insight.page.html import environment
        from nsys_insight.page.tables import table
        from nsys_insight.text.cells import printable

        shown = table(self, ROWS)
        more = f"{ROWS} of {self.row_count:,} rows; .frame() has all" if self.row_count > ROWS else ""
        parts: Any = environment().get_template("notebook.html.j2").module
        notes = [printable(note) for note in (*self.notes, *self.left_out)]
        return _styled(parts.answer(printable(self.heading or self.report), shown, notes, printable(self.empty), more))


class ShownDiagnosis(Diagnosis):
    """A diagnosis that notebooks show as the page does."""

    def _repr_html_(self) -> str:
        from nsys_insight.page.html import diagnosis_parts, environment

        parts: Any = environment().get_template("diagnosis.html.j2").module
        return _styled(parts.diagnosis(diagnosis_parts(self), []))


def answer(found: Answer) -> ShownAnswer:
    """Make an answer one that notebooks show."""
    return ShownAnswer(**{field.name: getattr(found, field.name) for field in fields(found)})


def diagnosis(found: Diagnosis) -> ShownDiagnosis:
    """Make a diagnosis one that notebooks show."""
    return ShownDiagnosis(**{field.name: getattr(found, field.name) for field in fields(found)})


def trace(opened: Session) -> str:
    """A trace as HTML: the file, the scope, how it was captured, and the figures of the whole.

    Raises:
        InsightError: The trace cannot be read any more.
    """
    from nsys_insight.packs import command_line
    from nsys_insight.packs.library import built_in
    from nsys_insight.page.content import Report, head
    from nsys_insight.page.html import environment
    from nsys_insight.text.cells import printable

    parts: Any = environment().get_template("notebook.html.j2").module
    facts, figures = head(Report(built_in()["info"], opened.answer("info")))
    scope = " ".join(command_line.flags(opened.about()["scope"], {}))
    return _styled(parts.trace(printable(opened.path.name), printable(scope), facts, figures))


def _styled(html: Any) -> str:
    from nsys_insight.notebook.style import styled

    return styled(str(html))
