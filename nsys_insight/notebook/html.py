"""A trace, an answer and a diagnosis as HTML for notebooks: the page's own parts and style, without its scripts."""

from __future__ import annotations

import re
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

from nsys_insight.diagnose.diagnosis import Diagnosis
from nsys_insight.paths import package_folder
from nsys_insight.session.answer import Answer

if TYPE_CHECKING:
    from nsys_insight.session.session import Session

# Rows that are shown of an answer.
ROWS = 20
ROOT = "nsys-insight"
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
_MEDIA = re.compile(r"(@media[^{]+)\{((?:[^{}]*\{[^{}]*\})*)\s*\}")
_NOT_HERE = re.compile(r"#|::|html|focus|hover|\.here")
# The page has its headings of columns in buttons; without a script there are none.
_OWN = f".{ROOT} {{ padding: 0.25rem 0.5rem; }} .{ROOT} th {{ padding: 0.35rem 0.8rem 0.35rem 0.55rem; }}"


class HtmlAnswer(Answer):
    """An answer that notebooks show as a table, with its notes."""

    def _repr_html_(self) -> str:
        from nsys_insight.page.html import environment
        from nsys_insight.page.tables import table
        from nsys_insight.text.cells import printable

        shown = table(self, ROWS)
        more = f"{ROWS} of {self.row_count:,} rows; .frame() has all" if self.row_count > ROWS else ""
        parts: Any = environment().get_template("notebook.html.j2").module
        notes = [printable(note) for note in (*self.notes, *self.left_out)]
        return styled(
            str(parts.answer(printable(self.heading or self.report), shown, notes, printable(self.empty), more))
        )


class HtmlDiagnosis(Diagnosis):
    """A diagnosis that notebooks show as the page does."""

    def _repr_html_(self) -> str:
        from nsys_insight.page.html import diagnosis_parts, environment

        parts: Any = environment().get_template("diagnosis.html.j2").module
        return styled(str(parts.diagnosis(diagnosis_parts(self), [])))


def answer(found: Answer) -> HtmlAnswer:
    """Make an answer one that notebooks show."""
    return HtmlAnswer(**{field.name: getattr(found, field.name) for field in fields(found)})


def diagnosis(found: Diagnosis) -> HtmlDiagnosis:
    """Make a diagnosis one that notebooks show."""
    return HtmlDiagnosis(**{field.name: getattr(found, field.name) for field in fields(found)})


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
    return styled(str(parts.trace(printable(opened.path.name), printable(scope), facts, figures)))


def styled(html: str) -> str:
    """Wrap a piece of HTML with those rules of the page's style that it needs, which hold only inside it."""
    return f'<div class="{ROOT}"><style>{_needed(html)}{_OWN}</style>{html}</div>'


def colors() -> dict[str, str]:
    """The page's colors on white by the name of what they stand for (`page.styles`)."""
    first, _, _ = _css().partition("}")
    found = dict(re.findall(r"--([a-z-]+): (#\w+)", first))
    return {**found, "busy": found["gemm"]}


def _needed(html: str) -> str:
    classes = {name for names in re.findall(r'class="([^"]*)"', html) for name in names.split()}
    tags = set(re.findall(r"<(\w+)", html))
    always, media = _MEDIA.sub("", _css()), _MEDIA.findall(_css())
    parts = [_rules(always, classes, tags)]
    for condition, rules in media:
        if "print" not in condition and (inside := _rules(rules, classes, tags)):
            parts.append(f"{condition.strip()} {{ {inside} }}")
    return " ".join(parts)


def _rules(css: str, classes: set[str], tags: set[str]) -> str:
    found = []
    for selectors, body in _RULE.findall(css):
        # A comma inside parentheses does not part selectors.
        parted = (each.strip() for each in re.split(r",(?![^(]*\))", selectors))
        kept = [scoped for each in parted if (scoped := _scoped(each, classes, tags))]
        if kept:
            found.append(f"{', '.join(kept)} {{{body.rstrip()} }}")
    return " ".join(found)


def _scoped(selector: str, classes: set[str], tags: set[str]) -> str:
    """A selector that fits only inside, or nothing where it fits nothing there."""
    if selector in (":root", "body"):
        return f".{ROOT}"
    if _NOT_HERE.search(selector) or "(" in selector:
        return ""
    named = set(re.findall(r"\.([a-z][\w-]*)", selector))
    elements = set(re.findall(r"(?:^|[\s>+])([a-z][a-z0-9]*)", selector))
    return f".{ROOT} {selector}" if named <= classes and elements <= tags else ""


@cache
def _css() -> str:
    text = (package_folder() / "page" / "templates" / "page.css").read_text(encoding="utf-8")
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
