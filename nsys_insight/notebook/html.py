"""A trace and an answer as HTML for notebooks: the page's templates and style, without its scripts."""

from __future__ import annotations

import re
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

from nsys_insight.paths import package_folder
from nsys_insight.session.answer import Answer

if TYPE_CHECKING:
    from nsys_insight.session.session import Session

# Rows of an answer that are shown.
MAX_ROWS = 20
REPR_WIDTH = 100
ROOT_CLASS = "nsys-insight"
_RULE = re.compile(r"([^{}]+)\{[^{}]*\}")
_MEDIA = re.compile(r"@media[^{]+\{(?:[^{}]*\{[^{}]*\})*\s*\}")
# On the page, column headings are buttons with padding. Without scripts there are no buttons.
_NOTEBOOK_RULES = (
    "& { padding: 0.25rem 0.5rem; } th { padding: 0.35rem 0.8rem 0.35rem 0.55rem; }"
    # JupyterLab floats dt and dd, aligns cells on the right, indents lists, and has thin headings. The class counts
    # twice, because its rules for cells and lists have two classes.
    " .figures dt, .figures dd { float: none; width: auto; padding: 0; }"
    f" &.{ROOT_CLASS} table th, &.{ROOT_CLASS} table td {{ text-align: left; }}"
    f" &.{ROOT_CLASS} table th.right, &.{ROOT_CLASS} table td.right {{ text-align: right; }}"
    f" &.{ROOT_CLASS} .facts, &.{ROOT_CLASS} .findings {{ padding: 0; }}"
    f" &.{ROOT_CLASS} table {{ margin: 0; }} h2, h3 {{ font-weight: 700; }}"
)


class HtmlAnswer(Answer):
    """An answer that notebooks show as a table, with its notes. Plain Python shows the table of the terminal."""

    def __repr__(self) -> str:
        """Write the table of the terminal."""
        from io import StringIO

        from nsys_insight.render import write

        text = StringIO()
        write(self, text, "table", limit=MAX_ROWS, width=REPR_WIDTH)
        return text.getvalue().rstrip("\n")

    def to_json(self) -> str:
        """Write the answer as ``--format json`` does: rows with raw values, notes, and what the columns mean."""
        return write_json(self)

    def _repr_html_(self) -> str:
        from nsys_insight.page.html import make_environment
        from nsys_insight.page.tables import build_table
        from nsys_insight.text.cells import printable

        narrowed = self.select_main_columns()
        first_rows = build_table(narrowed, MAX_ROWS)
        hidden = [f"{MAX_ROWS} of {self.row_count:,} rows"] if self.row_count > MAX_ROWS else []
        if len(narrowed.columns) < len(self.columns):
            hidden.append(f"{len(narrowed.columns)} of {len(self.columns)} columns")
        row_hint = f"{', '.join(hidden)}; .frame() has all" if hidden else ""
        macros: Any = make_environment().get_template("notebook.html.j2").module
        notes = [printable(note) for note in (*self.notes, *self.left_out)]
        title = printable(self.heading or self.report)
        return add_style(str(macros.answer(title, first_rows, notes, printable(self.empty), row_hint)))


def write_json(answer: Answer) -> str:
    """Write an answer as ``--format json`` does."""
    from io import StringIO

    from nsys_insight.render import json_

    stream = StringIO()
    json_.write(answer, stream, limit=None)
    return stream.getvalue()


def make_html_answer(answer: Answer) -> HtmlAnswer:
    """Convert an answer to one that notebooks show as a table."""
    return HtmlAnswer(**{field.name: getattr(answer, field.name) for field in fields(answer)})


def render_trace(trace: Session) -> str:
    """Render a trace as HTML: the file, the scope, how it was captured, and its overall figures.

    Raises:
        InsightError: The trace can no longer be read.
    """
    from nsys_insight.packs import flag_texts
    from nsys_insight.packs.library import built_in_packs
    from nsys_insight.page.content import Report, summarize_trace
    from nsys_insight.page.html import make_environment
    from nsys_insight.text.cells import printable

    macros: Any = make_environment().get_template("notebook.html.j2").module
    facts, figures = summarize_trace(Report(built_in_packs()["info"], trace.answer("info")))
    scope = " ".join(flag_texts.format_flags(trace.describe_trace()["scope"], {}))
    return add_style(str(macros.trace(printable(trace.path.name), printable(scope), facts, figures)))


def add_style(html: str) -> str:
    """Wrap a piece of HTML with the rules of the page's style that it needs. They apply only inside it."""
    css = f".{ROOT_CLASS} {{ {_select_rules(html)} {_NOTEBOOK_RULES} }}{_theme_rules()}"
    return f'<div class="{ROOT_CLASS}"><style>{css}</style>{html}</div>'


def _select_rules(html: str) -> str:
    words = set(re.findall(r"[\w-]+", html))
    rules = (rule for rule in _RULE.finditer(_MEDIA.sub("", _read_css())) if ":root" not in rule[1])
    needed_rules = (rule for rule in rules if words.issuperset(re.findall(r"[.#]([a-z][\w-]*)", rule[1])))
    return " ".join(re.sub(r"^body\b", "&", rule[0].strip()) for rule in needed_rules)


def _theme_rules() -> str:
    """Return the colors for the system's theme, and for JupyterLab's, which may differ from it."""
    light, dark, *_ = re.findall(r":root \{([^}]*)\}", _read_css())
    root = f".{ROOT_CLASS}"
    return (
        f" {root} {{{light} }} @media (prefers-color-scheme: dark) {{ {root} {{{dark} }} }}"
        f' [data-jp-theme-light="true"] {root} {{{light} color-scheme: light; }}'
        f' [data-jp-theme-light="false"] {root} {{{dark} color-scheme: dark; }}'
    )


def read_colors() -> dict[str, str]:
    """Return the page's colors on white by style (`page.styles`)."""
    first_rule, _, _ = _read_css().partition("}")
    palette = dict(re.findall(r"--([a-z-]+): (#\w+)", first_rule))
    return {**palette, "busy": palette["gemm"]}


@cache
def _read_css() -> str:
    text = (package_folder() / "page" / "templates" / "page.css").read_text(encoding="utf-8")
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
