"""The page: a report to share. It holds the answers of the other commands in one self-contained file.

`choose_kind` picks the format from the file's name. `write_page` writes the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_insight import progress
from nsys_insight.errors import UsageError
from nsys_insight.packs.step_options import AUTO, StepOptions

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_insight.session.session import Session

_KIND_OF_SUFFIX = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown"}


def choose_kind(output: Path | None) -> str:
    """Return the kind of page: html or markdown, by the file's suffix.

    Raises:
        UsageError: The suffix is neither HTML nor Markdown.
    """
    kind = "markdown" if output is None else _KIND_OF_SUFFIX.get(output.suffix.lower())
    if kind is None:
        raise UsageError(
            f"unsupported report format of '{output}' (use .html or .md)", "name it report.html or report.md"
        )
    return kind


def write_page(
    trace: Session,
    kind: str,
    steps: StepOptions = AUTO,
    *,
    limit: int | None = None,
    sizes: dict[str, Any] | None = None,
) -> str:
    """Write the report.

    Args:
        trace: The trace, in its scope, or the traces of the ranks of a run.
        kind: html or markdown.
        steps: How steps are found.
        limit: The maximum number of rows of a table. 0 means all, None the default of the kind.
        sizes: Parameters of the report `roofline`: the problem sizes of kernels.

    Raises:
        InsightError: The trace cannot be read, or has no steps of the requested kind.
    """
    from nsys_insight.page import html, markdown
    from nsys_insight.page.content import gather, select_rank

    with progress.show_task("making the page"):
        content = gather(trace, steps, sizes, html.list_first_queries() if kind == "html" else ())
        if kind == "markdown":
            return markdown.write_report(content, markdown.MAX_ROWS if limit is None else limit or None)
        drawings = html.draw(select_rank(trace, content.diagnosis), steps, content)
        return html.render_page(content, drawings, html.MAX_ROWS if limit is None else limit or None)
