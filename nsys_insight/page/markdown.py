"""The report as Markdown, for a pull request or an issue: the reports in the page's order, the long ones folded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.diagnose import text as diagnosis_text
from nsys_insight.page import pictures
from nsys_insight.page.content import sentences
from nsys_insight.page.measured import READING
from nsys_insight.render.human import fields_of, footer
from nsys_insight.render.markdown import code, prose, table
from nsys_insight.text.cells import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nsys_insight.page.content import Content, Report
    from nsys_insight.page.pictures import Bar

# Rows of a table; the command below it gives all.
ROWS = 20
_BAR = 40  # characters of the longest bar


def text(content: Content, limit: int | None = ROWS) -> str:
    """Write the report, with at most `limit` rows in a table, or all."""
    return "\n".join(_lines(content, limit)).rstrip() + "\n"


def _lines(content: Content, limit: int | None) -> Iterator[str]:
    yield f"# {prose(printable(content.file))}"
    yield ""
    yield from (f"- {prose(printable(fact))}" for fact in content.facts)
    if content.narrowed:
        yield f"- narrowed: {code(printable(content.narrowed))}"
    yield ""
    yield from figures(content)
    yield diagnosis_text.markdown(content.diagnosis)
    for topic, reports in content.topics.items():
        yield f"## {topic.title}"
        yield ""
        yield topic.about
        yield ""
        for at, entry in enumerate(entry for entry in reports if not entry.is_empty):
            yield from _report(entry, content.command(entry.pack.name), limit, folded=at > 0)
        if topic.name == "kernels" and content.measured is not None:
            yield from (f"### {content.measured.title}", "", READING, "")
            yield "".join(table(fields_of(content.measured, content.measured.rows(limit), full_names=False)))
        empty = [f"- {entry.pack.name}: {prose(printable(entry.answer.empty))}" for entry in reports if entry.is_empty]
        if empty:
            yield from ("Nothing to show:", "", *empty, "")


def figures(content: Content) -> Iterator[str]:
    """The figures at the head as a table of one row."""
    if content.figures:
        yield "| " + " | ".join(figure.label for figure in content.figures) + " |"
        yield "|" + " ---: |" * len(content.figures)
        yield "| " + " | ".join(f"**{prose(figure.text)}**" for figure in content.figures) + " |"
        yield ""


def _report(entry: Report, command: str, limit: int | None, *, folded: bool) -> Iterator[str]:
    title = f"{entry.pack.title} ({entry.pack.name})"
    if folded:
        # What is between the tags is Markdown only if empty lines are around it.
        yield from ("<details>", f"<summary>{prose(title)}</summary>", "")
    else:
        yield from (f"### {prose(title)}", "")
    yield prose(sentences(entry.pack.reading, 2))
    yield ""
    yield from _picture(entry)
    fields = fields_of(entry.answer, entry.answer.rows(limit), full_names=False)
    yield "".join(table([field for field in fields if not field.detail]))
    yield f"{footer(entry.answer, limit)}: {code(printable(command))}"
    yield ""
    if entry.answer.notes:
        yield from (f"- {prose(printable(note))}" for note in entry.answer.notes)
        yield ""
    if folded:
        yield from ("</details>", "")


def _picture(entry: Report) -> Iterator[str]:
    """A drawing in characters, for those reports that are best seen."""
    stacks = {"idle": pictures.idle, "classify": pictures.budget}.get(entry.pack.name)
    for stack in stacks(entry.answer) if stacks else ():
        if stack.title:
            yield from (f"{prose(stack.title)}:", "")
        yield from _bars(stack.parts)


def _bars(bars: Iterable[Bar]) -> Iterator[str]:
    drawn = [(bar.label, "█" * round(bar.width * _BAR / 100) or "▏", bar.figure) for bar in bars]
    widest = max((len(label) for label, *_ in drawn), default=0)
    longest = max((len(bar) for _, bar, _ in drawn), default=0)
    yield "```text"
    yield from (f"{label:<{widest}}  {bar:<{longest}}  {figure}" for label, bar, figure in drawn)
    yield from ("```", "")
