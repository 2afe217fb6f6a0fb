"""The page, a report to share: everything that the other commands answer, in one file that explains itself.

`page_text` makes it, of the kind that `page_kind` tells from the file's name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_insight import progress
from nsys_insight.errors import UsageError
from nsys_insight.packs.step_options import AUTO, StepOptions

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_insight.session.session import Session

TEMPLATES = ("full", "agent")
_KINDS = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown"}


def page_kind(output: Path | None, template: str) -> str:
    """Tell what to write: html or markdown, by the file's suffix, or agent.

    Raises:
        UsageError: The suffix says neither, or contradicts the template.
    """
    if template not in TEMPLATES:
        raise UsageError(f"there is no template {template!r}", f"choose one of: {', '.join(TEMPLATES)}")
    kind = "markdown" if output is None else _KINDS.get(output.suffix.lower())
    if kind is None:
        raise UsageError(
            f"a report is a page or Markdown, which the suffix of '{output}' does not say",
            "name it report.html or report.md",
        )
    if template == "agent" and kind == "html":
        raise UsageError("the agent template is Markdown", "name it report.md, or omit --template agent")
    return "agent" if template == "agent" else kind


def page_text(
    trace: Session,
    kind: str,
    steps: StepOptions = AUTO,
    *,
    limit: int | None = None,
    sizes: dict[str, Any] | None = None,
) -> str:
    """Make the report.

    Args:
        trace: The trace, in its scope, or those of the ranks of a run.
        kind: html, markdown or agent.
        steps: How steps are found.
        limit: The most rows of a table; 0 is all, None what suits the kind.
        sizes: Parameters of the report `roofline`: how large the work is that kernels do.

    Raises:
        InsightError: The trace cannot be read, or has no steps of the kind that was asked for.
    """
    with progress.at("making the page"):
        return _page_text(trace, kind, steps, limit, sizes)


def _page_text(trace: Session, kind: str, steps: StepOptions, limit: int | None, sizes: dict[str, Any] | None) -> str:
    from nsys_insight.page import html, markdown
    from nsys_insight.page.content import gather, one_of

    content = gather(trace, steps, sizes, html.first_queries() if kind == "html" else ())
    if kind == "agent":
        return markdown.agent_text(content)
    if kind == "markdown":
        return markdown.text(content, markdown.ROWS if limit is None else limit or None)
    drawings = html.draw(one_of(trace, content.diagnosis), steps, content)
    return html.page(content, drawings, html.ROWS if limit is None else limit or None)
