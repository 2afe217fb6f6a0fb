"""A diagnosis as HTML for notebooks. Reports do not import the rules that it needs."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from nsys_insight.diagnose.diagnosis import Diagnosis
from nsys_insight.notebook.html import REPR_WIDTH, add_style, write_json


class HtmlDiagnosis(Diagnosis):
    """A diagnosis that notebooks show as the page does. Plain Python shows its text."""

    def __repr__(self) -> str:
        """Write the text of the terminal."""
        return self.text(REPR_WIDTH).rstrip("\n")

    def to_json(self) -> str:
        """Write the diagnosis as ``diagnose --format json`` does: the headline as `summary`, findings as rows."""
        return write_json(self.answer())

    def _repr_html_(self) -> str:
        from nsys_insight.page.html import describe_diagnosis, make_environment

        macros: Any = make_environment().get_template("diagnosis.html.j2").module
        return add_style(str(macros.diagnosis(describe_diagnosis(self), [])))


def make_html_diagnosis(diagnosis: Diagnosis) -> HtmlDiagnosis:
    """Convert a diagnosis to one that notebooks show as the page does."""
    return HtmlDiagnosis(**{field.name: getattr(diagnosis, field.name) for field in fields(diagnosis)})
