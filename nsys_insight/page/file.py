"""Write the report to a file: whole or not at all, and never over the trace."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsys_insight import progress
from nsys_insight.errors import UsageError, cannot_write
from nsys_insight.packs.step_options import AUTO, StepOptions

if TYPE_CHECKING:
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
        raise UsageError("what an agent reads is Markdown", "name it report.md, or leave --template agent out")
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
        trace: The trace, in its scope.
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
    from nsys_insight.page import agent, markdown
    from nsys_insight.page.content import gather

    content = gather(trace, steps, sizes)
    if kind == "agent":
        return agent.text(content)
    if kind == "markdown":
        return markdown.text(content, markdown.ROWS if limit is None else limit or None)
    from nsys_insight.page import html
    from nsys_insight.page.layer import layer
    from nsys_insight.page.strip import strip

    return html.page(content, strip(trace, steps), layer(trace, steps), html.ROWS if limit is None else limit or None)


def refuse_input(trace: Session, output: Path) -> None:
    """Refuse to write over what was read.

    Raises:
        UsageError: It is the trace, or what ncu measured.
    """
    for read in (*trace.paths, *([trace.ncu] if trace.ncu else [])):
        if output.exists() and read.exists() and output.samefile(read):
            raise UsageError(f"{output} is the trace itself", "name another file with -o")


def save(output: Path, text: str) -> None:
    """Write the file beside its place and put it there when it is whole.

    Raises:
        UsageError: It cannot be written.
    """
    try:
        handle, name = tempfile.mkstemp(dir=output.parent, prefix=f".{output.stem[:40]}-", suffix=output.suffix)
    except OSError as error:
        raise cannot_write(output, error) from None
    made = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
        made.chmod(_mode_of(output))
        made.replace(output)
    except OSError as error:
        raise cannot_write(output, error) from None
    finally:
        made.unlink(missing_ok=True)


def _mode_of(output: Path) -> int:
    """The rights that the file has, or that a new file would have: temporary ones are their owner's alone."""
    if output.exists():
        return output.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
