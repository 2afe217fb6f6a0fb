"""Scrub a trace: find sensitive words, rewrite every text, verify the result."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight import cache_folder, outputs
from nsys_insight.errors import QueryError, UsageError
from nsys_insight.ingest.export import export
from nsys_insight.ingest.files import Kind
from nsys_insight.ingest.identify import identify, make_scannable
from nsys_insight.scrub.copy import copy_export
from nsys_insight.scrub.rewrite import Rewriter, describe_counts
from nsys_insight.scrub.sensitive import Sensitive, find_sensitive
from nsys_insight.scrub.verify import find_differing_reports, find_remaining_secrets
from nsys_insight.session.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsys_insight.session.answer import Answer


class ScrubResult(NamedTuple):
    """The result. `remaining` lists texts that still look private, `counts_text` has the replacements by kind.

    `differing_reports` are the reports whose numbers changed because they read kernel names, which are hashed.
    """

    remaining: Answer
    counts_text: str
    differing_reports: list[str]


def scrub(  # noqa: PLR0913 - options, by keyword
    trace: Path,
    output: Path,
    *,
    names: bool = False,
    key: str | None = None,
    shift_times: bool = False,
    force: bool = False,
    write_part: Callable[[Path, Path], None] | None = None,
    note: Callable[[str], None] = lambda _: None,
    progress: Callable[[int], None] | None = None,
) -> ScrubResult:
    """Write a copy of a trace without private data to a SQLite file.

    Args:
        trace: A SQLite export, or a report. A report is exported first, because only nsys can write reports.
        output: The file to write.
        names: Hash the names of kernels.
        key: The key of the hash. None means a random key that is not stored, so names in two files do not match.
        shift_times: Let the trace begin at 0, on the first day of 1970.
        force: Overwrite an existing file.
        write_part: Called with the export and an empty path: writes the part of the export to scrub there.
        note: Called with messages for the user.
        progress: Called with the percentage while nsys exports a report.

    Raises:
        UsageError: The trace is neither a SQLite export nor a report, or the output exists or cannot be written.
        QueryError: A report gives other numbers for the written file. The file is removed.
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
            "only nsys can write a report (.nsys-rep)", "write a .sqlite, which is also a trace: -o shared.sqlite"
        )
    outputs.check_target(output, [trace])
    outputs.refuse_existing(output, force=force)
    with cache_folder.use_temporary_folder() as folder:
        source = trace
        if kind is Kind.REPORT:
            note("only nsys can write a report (.nsys-rep), so this writes a .sqlite, which is also a trace")
            source = export(trace, folder.claim("trace.sqlite"), note=note, progress=progress)
        source = make_scannable(source, note, use_cache=False, keep_private=True)
        with outputs.open_output(output, [trace, source], force=force) as temporary_file:
            # A part has no environment, so the words to look for are those of the full trace.
            sensitive = find_sensitive(source)
            if write_part:
                export_file, source = source, folder.claim("part.sqlite")
                write_part(export_file, source)
            return _scrub_export(source, temporary_file, sensitive, names=names, key=key, shift_times=shift_times)


def _scrub_export(  # noqa: PLR0913 - options, by keyword
    source: Path, target: Path, sensitive: Sensitive, *, names: bool, key: str | None, shift_times: bool
) -> ScrubResult:
    # The copy has no data of ncu next to it.
    with Session(source, use_cache=False, ncu=False) as before:
        shift_ns = int(before.rows("SELECT coalesce(min(start_ns), 0)::BIGINT AS ns FROM wall")[0].ns)
        rewriter = Rewriter(sensitive, (key.encode() if key else os.urandom(32)) if names else None)
        copy_export(source, target, rewriter, sensitive, shift_ns if shift_times else None)
        with Session(target, use_cache=False, ncu=False) as after:
            differing = find_differing_reports(before, after, shift_ns if shift_times else 0)
    if differing and not names:
        raise QueryError(
            f"the scrubbed trace gives different numbers in {', '.join(differing)}: nothing is written",
            "please report this with how the trace was captured: nsys-insight info",
        )
    return ScrubResult(find_remaining_secrets(target, sensitive, rewriter), describe_counts(rewriter.counts), differing)
