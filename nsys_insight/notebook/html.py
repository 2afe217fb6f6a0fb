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
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
_MEDIA = re.compile(r"(@media[^{]+)\{((?:[^{}]*\{[^{}]*\})*)\s*\}")
_SKIPPED_SELECTOR = re.compile(r"#|::|html|focus|hover|\.here")
# On the page, column headings are buttons with padding. Without scripts there are no buttons.
_NOTEBOOK_RULES = (
    f".{ROOT_CLASS} {{ padding: 0.25rem 0.5rem; }} .{ROOT_CLASS} th {{ padding: 0.35rem 0.8rem 0.35rem 0.55rem; }}"
    # JupyterLab floats dt and dd, aligns cells on the right, indents lists, and has thin headings. The class counts
    # twice, because its rules for cells and lists have two classes.
    f" .{ROOT_CLASS} .figures dt, .{ROOT_CLASS} .figures dd {{ float: none; width: auto; padding: 0; }}"
    f" .{ROOT_CLASS}.{ROOT_CLASS} table th, .{ROOT_CLASS}.{ROOT_CLASS} table td {{ text-align: left; }}"
    f" .{ROOT_CLASS}.{ROOT_CLASS} table th.right, .{ROOT_CLASS}.{ROOT_CLASS} table td.right {{ text-align: right; }}"
    f" .{ROOT_CLASS}.{ROOT_CLASS} .facts, .{ROOT_CLASS}.{ROOT_CLASS} .findings {{ padding: 0; }}"
    f" .{ROOT_CLASS}.{ROOT_CLASS} table {{ margin: 0; }} .{ROOT_CLASS} h2, .{ROOT_CLASS} h3 {{ font-weight: 700; }}"
    f" .{ROOT_CLASS} .verdict::first-letter {{ text-transform: uppercase; }}"
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

        narrowed = self._select_main_columns()
        first_rows = build_table(narrowed, MAX_ROWS)
        hidden = [f"{MAX_ROWS} of {self.row_count:,} rows"] if self.row_count > MAX_ROWS else []
        if len(narrowed.columns) < len(self.columns):
            hidden.append(f"{len(narrowed.columns)} of {len(self.columns)} columns")
        row_hint = f"{', '.join(hidden)}; .frame() has all" if hidden else ""
        macros: Any = make_environment().get_template("notebook.html.j2").module
        notes = [printable(note) for note in (*self.notes, *self.left_out)]
        title = printable(self.heading or self.report)
        return add_style(str(macros.answer(title, first_rows, notes, printable(self.empty), row_hint)))

    def _select_main_columns(self) -> Answer:
        """Return the answer with its main columns, in their order: a cell of a notebook is narrow."""
        main_columns = sorted(
            (column for column in self.columns if column.position is not None), key=lambda column: column.position or 0
        )
        columns = main_columns or [column for column in self.columns if not column.is_detail]
        return self.select_columns([column.name for column in columns])


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
    from nsys_insight.packs import command_line
    from nsys_insight.packs.library import built_in_packs
    from nsys_insight.page.content import Report, summarize_trace
    from nsys_insight.page.html import make_environment
    from nsys_insight.text.cells import printable

    macros: Any = make_environment().get_template("notebook.html.j2").module
    facts, figures = summarize_trace(Report(built_in_packs()["info"], trace.answer("info")))
    scope = " ".join(command_line.format_flags(trace.describe_trace()["scope"], {}))
    return add_style(str(macros.trace(printable(trace.path.name), printable(scope), facts, figures)))


def add_style(html: str) -> str:
    """Wrap a piece of HTML with the rules of the page's style that it needs. They apply only inside it."""
    css = f"{_select_rules(html)}{_NOTEBOOK_RULES}{_theme_rules()}"
    return f'<div class="{ROOT_CLASS}"><style>{css}</style>{html}</div>'


def _theme_rules() -> str:
    """Return the colors for JupyterLab's theme, which may differ from the system's."""
    light, dark, *_ = re.findall(r":root \{([^}]*)\}", _read_css())
    palettes = {"true": f"{light} color-scheme: light;", "false": f"{dark} color-scheme: dark;"}
    return "".join(
        f' [data-jp-theme-light="{is_light}"] .{ROOT_CLASS} {{{palette} }}' for is_light, palette in palettes.items()
    )


def read_colors() -> dict[str, str]:
    """Return the page's colors on white by style (`page.styles`)."""
    first_rule, _, _ = _read_css().partition("}")
    palette = dict(re.findall(r"--([a-z-]+): (#\w+)", first_rule))
    return {**palette, "busy": palette["gemm"]}


def _select_rules(html: str) -> str:
    classes = {name for names in re.findall(r'class="([^"]*)"', html) for name in names.split()}
    tags = set(re.findall(r"<(\w+)", html))
    base_css, media_queries = _MEDIA.sub("", _read_css()), _MEDIA.findall(_read_css())
    rule_texts = [_filter_rules(base_css, classes, tags)]
    for condition, rules in media_queries:
        if "print" not in condition and (media_rules := _filter_rules(rules, classes, tags)):
            rule_texts.append(f"{condition.strip()} {{ {media_rules} }}")
    return " ".join(rule_texts)


def _filter_rules(css: str, classes: set[str], tags: set[str]) -> str:
    rule_texts = []
    for selectors, body in _RULE.findall(css):
        # A comma inside parentheses does not separate selectors.
        selector_list = (selector.strip() for selector in re.split(r",(?![^(]*\))", selectors))
        scoped_selectors = [
            scoped_selector
            for selector in selector_list
            if (scoped_selector := _scope_selector(selector, classes, tags))
        ]
        if scoped_selectors:
            rule_texts.append(f"{', '.join(scoped_selectors)} {{{body.rstrip()} }}")
    return " ".join(rule_texts)


def _scope_selector(selector: str, classes: set[str], tags: set[str]) -> str:
    """Return a selector that matches only inside the wrapper, or "" if it matches nothing there."""
    if selector in (":root", "body"):
        return f".{ROOT_CLASS}"
    if _SKIPPED_SELECTOR.search(selector) or "(" in selector:
        return ""
    selector_classes = set(re.findall(r"\.([a-z][\w-]*)", selector))
    elements = set(re.findall(r"(?:^|[\s>+])([a-z][a-z0-9]*)", selector))
    return f".{ROOT_CLASS} {selector}" if selector_classes <= classes and elements <= tags else ""


@cache
def _read_css() -> str:
    text = (package_folder() / "page" / "templates" / "page.css").read_text(encoding="utf-8")
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
