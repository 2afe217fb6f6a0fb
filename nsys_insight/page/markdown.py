"""The report as Markdown, for a pull request or an issue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.diagnose import text as diagnosis_text
from nsys_insight.page import pictures
from nsys_insight.page.content import NCU_READING, Content, Report, label_columns, take_sentences
from nsys_insight.render.fields import build_fields, write_footer
from nsys_insight.render.markdown import escape_prose, format_code, format_table
from nsys_insight.text.cells import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nsys_insight.page.pictures import Bar

# Rows of a table. The command below the table prints all rows.
MAX_ROWS = 20
_BAR_LENGTH = 40  # characters of the longest bar


def write_report(content: Content, limit: int | None = MAX_ROWS) -> str:
    """Write the report, with at most `limit` rows in a table. None means all rows."""
    return "\n".join(_write_lines(content, limit)).rstrip() + "\n"


def _write_lines(content: Content, limit: int | None) -> Iterator[str]:
    yield f"# {escape_prose(printable(content.file))}"
    yield ""
    yield from (f"- {escape_prose(printable(fact))}" for fact in content.facts)
    if content.scope_flags:
        yield f"- narrowed: {format_code(printable(content.scope_flags))}"
    yield ""
    yield from _write_figures(content)
    yield diagnosis_text.write_markdown(content.diagnosis_to_share)
    for topic, reports in content.topics.items():
        yield f"## {topic.title}"
        yield ""
        yield topic.summary
        yield ""
        for index, entry in enumerate(entry for entry in reports if not entry.is_empty):
            yield from _write_report_table(entry, content.build_command(entry.pack.name), limit, is_folded=index > 0)
        if topic.name == "kernels" and content.ncu_answer is not None:
            yield from (f"### {content.ncu_answer.title}", "", NCU_READING, "")
            ncu_fields = build_fields(content.ncu_answer, content.ncu_answer.rows(limit), full_names=False)
            yield "".join(format_table(ncu_fields))
        empty = [
            f"- {entry.pack.name}: {escape_prose(printable(entry.answer.empty))}" for entry in reports if entry.is_empty
        ]
        if empty:
            yield from ("Not available in this trace:", "", *empty, "")


def _write_figures(content: Content) -> Iterator[str]:
    """Write the figures at the head as a table of one row."""
    if content.figures:
        yield "| " + " | ".join(figure.label for figure in content.figures) + " |"
        yield "|" + " ---: |" * len(content.figures)
        yield "| " + " | ".join(f"**{escape_prose(figure.text)}**" for figure in content.figures) + " |"
        yield ""


def _write_report_table(entry: Report, command: str, limit: int | None, *, is_folded: bool) -> Iterator[str]:
    title = f"{entry.pack.title} ({entry.pack.name})"
    if is_folded:
        # Markdown between HTML tags needs an empty line before and after it.
        yield from ("<details>", f"<summary>{escape_prose(title)}</summary>", "")
    else:
        yield from (f"### {escape_prose(title)}", "")
    yield escape_prose(label_columns(take_sentences(entry.pack.reading, 2)))
    yield ""
    yield from _write_picture(entry)
    fields = build_fields(entry.answer, entry.answer.rows(limit), full_names=False)
    yield "".join(format_table([field for field in fields if not field.is_detail]))
    yield f"{write_footer(entry.answer, limit)}: {format_code(printable(command))}"
    yield ""
    if entry.answer.notes:
        yield from (f"- {escape_prose(printable(note))}" for note in entry.answer.notes)
        yield ""
    if is_folded:
        yield from ("</details>", "")


def _write_picture(entry: Report) -> Iterator[str]:
    """Draw a report as bars of characters, if it has a picture."""
    stacks = {"idle": pictures.draw_idle, "classify": pictures.draw_budget}.get(entry.pack.name)
    for stack in stacks(entry.answer) if stacks else ():
        if stack.title:
            yield from (f"{escape_prose(stack.title)}:", "")
        yield from _write_bars(stack.bars)


def _write_bars(bars: Iterable[Bar]) -> Iterator[str]:
    bar_lines = [(bar.label, "█" * round(bar.width * _BAR_LENGTH / 100) or "▏", bar.figure) for bar in bars]
    widest = max((len(label) for label, *_ in bar_lines), default=0)
    longest = max((len(bar) for _, bar, _ in bar_lines), default=0)
    yield "```text"
    yield from (f"{label:<{widest}}  {bar:<{longest}}  {figure}" for label, bar, figure in bar_lines)
    yield from ("```", "")
