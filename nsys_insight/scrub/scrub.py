"""Scrub a trace: find sensitive words, rewrite every text, verify what was written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight import outputs
from nsys_insight.errors import QueryError, UsageError
from nsys_insight.ingest.export import export
from nsys_insight.ingest.files import Kind
from nsys_insight.ingest.identify import identify, settled
from nsys_insight.scrub.copy import copy
from nsys_insight.scrub.rewrite import Rewriter, counted
from nsys_insight.scrub.sensitive import find_sensitive
from nsys_insight.scrub.verify import differing_reports, secrets_left
from nsys_insight.session.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_insight.session.answer import Answer


class Scrubbed(NamedTuple):
    """The result: `left` lists texts that still look like a secret, `rewritten` counts what was replaced, by kind.

    `differing` are the reports whose numbers changed because they read kernel names, which are hashed.
    """

    left: Answer
    rewritten: str
    differing: list[str]


def scrub(  # noqa: PLR0913 - what is rewritten, by keyword
    trace: Path,
    output: Path,
    *,
    names: bool = False,
    key: str | None = None,
    shift_times: bool = False,
    force: bool = False,
    note: Callable[[str], None] = lambda _: None,
    progress: Callable[[int], None] | None = None,
) -> Scrubbed:
    """Write a trace without what is private to a SQLite file.

    Args:
        trace: A SQLite export, or a report, which is exported first: only nsys writes reports.
        output: The file to write.
        names: Hash the names of kernels.
        key: What they are hashed with; None takes a key that nobody knows, so that names in two files do not match.
        shift_times: Let the trace begin at 0, on the first day of 1970.
        force: Write over a file that is there.
        note: Called with what the user should know.
        progress: Called with the percentage while nsys exports a report.

    Raises:
        UsageError: It is no SQLite export or report, or the output is there, or cannot be written.
        QueryError: A report says something else of the file that was written; nothing is left of that.
    """
    kind = identify(trace)
    if kind not in (Kind.SQLITE, Kind.REPORT):
        raise UsageError(
            f"{trace} is not an SQLite export: scrub works on what nsys wrote, and a conversion has less "
            "than half of it",
            "name the .sqlite or the .nsys-rep that it was made from",
        )
    if output.suffix in (".nsys-rep", ".qdrep"):
        raise UsageError(
            "only nsys can write a report (.nsys-rep)",
            "write a .sqlite, which is also a trace: -o shared.sqlite",
        )
    outputs.check(output, [trace])
    if output.exists() and not force:
        raise UsageError(f"{output} exists already", "choose another name, or add --force")
    with tempfile.TemporaryDirectory(prefix="nsys-insight-") as folder:
        source = trace
        if kind is Kind.REPORT:
            note("only nsys can write a report (.nsys-rep), so this writes a .sqlite, which is also a trace")
            source = export(trace, Path(folder) / "trace.sqlite", note=note, progress=progress)
        source = settled(source, note, lasting=False, whole=True)
        with outputs.whole(output, [trace, source], force=force) as made:
            return _scrub(source, made, names=names, key=key, shift_times=shift_times)


def _scrub(source: Path, made: Path, *, names: bool, key: str | None, shift_times: bool) -> Scrubbed:
    sensitive = find_sensitive(source)
    with Session(source, use_cache=False) as before:
        shift_ns = int(before.rows("SELECT coalesce(min(start_ns), 0)::BIGINT AS ns FROM wall")[0].ns)
        rewriter = Rewriter(sensitive, (key.encode() if key else os.urandom(32)) if names else None)
        copy(source, made, rewriter, sensitive, shift_ns if shift_times else None)
        with Session(made, use_cache=False) as after:
            differs = differing_reports(before, after, shift_ns if shift_times else 0)
    if differs and not names:
        raise QueryError(
            f"the scrubbed trace gives different numbers in {', '.join(differs)}: nothing is written",
            "please report this with how the trace was captured: nsys-insight info",
        )
    return Scrubbed(secrets_left(made, sensitive), counted(rewriter.counts), differs)
