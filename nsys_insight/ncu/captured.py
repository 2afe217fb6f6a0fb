"""What a capture says about the program that was profiled: how it was started, its steps, what it hides."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    from nsys_insight.session.session import Session

# Names that ncu's filter takes as they are: / , @ [ ] * and others are its operators.
PLAIN_NAME = re.compile(r"(?!-)[\w .:-]+")


def steps(trace: Session) -> tuple[str, Session]:
    """Return the range that marks the steps, as all reports find them, and the trace narrowed to it.

    An empty name and the whole trace where steps are told otherwise, or ncu's filter cannot mean them by a name: it has
    numbers, or another range is around it.
    """
    if trace.about()["scope"]:
        return "", trace
    found = trace.dicts(
        """SELECT pattern FROM step_method
           WHERE method = 'nvtx' AND NOT EXISTS (FROM nvtx_nesting WHERE name = pattern AND depth > 1)""",
    )
    name = found[0]["pattern"] if found else ""
    return (name, trace.scope(nvtx=name)) if PLAIN_NAME.fullmatch(name) else ("", trace)


def steady_window(trace: Session, process: int) -> tuple[int, int] | None:
    """Return from when until when on the GPU the second half of the steady steps ran; None without steps.

    There, caches are warm, allocators are settled and lengths are typical.
    """
    found = trace.dicts(
        f"""SELECT quantile_disc(start_ns, 0.5) AS start_ns, max(end_ns) AS end_ns
            FROM steps WHERE phase = 'steady' AND process_id = {process}""",
    )[0]
    return None if found["start_ns"] is None else (found["start_ns"], found["end_ns"])


def domain(trace: Session, name: str) -> str:
    """The range's NVTX domain as ncu's filter wants it; nothing for the default domain."""
    found = trace.dicts(f"SELECT DISTINCT domain FROM nvtx_ranges WHERE name = {literal(name)} ORDER BY domain LIMIT 1")
    return f"{found[0]['domain']}@" if found and found[0]["domain"] else ""


def profiler_starts(trace: Session) -> bool:
    """Whether the capture began at a cudaProfilerStart, so that ncu must begin there too."""
    return bool(
        trace.dicts(
            """SELECT 1 FROM api_calls WHERE regexp_matches(name, '^cu(da)?ProfilerStart')
               AND start_ns <= (SELECT min(start_ns) FROM kernel_events)""",
        )
    )


def app(trace: Session) -> tuple[tuple[str, ...], str]:
    """The program's command line, with its secrets masked, and folder as recorded; never its environment."""
    found = trace.dicts(
        """SELECT name, value FROM capture
           WHERE regexp_matches(name, '^PROCESS_0:(COMMAND|ARGUMENT_\\d+|WORKING_DIR)$')""",
    )
    said = {row["name"].removeprefix("PROCESS_0:"): row["value"] for row in found}
    if not said.get("COMMAND"):
        return (), ""
    arguments = sorted((name for name in said if name.startswith("ARGUMENT_")), key=lambda name: int(name[9:]))
    return (said["COMMAND"], *(said[name] or "" for name in arguments)), said.get("WORKING_DIR") or ""


def doubts(trace: Session, process: int) -> list[str]:
    """What may make ncu count otherwise than the trace."""
    notes = []
    others = trace.dicts(f"SELECT count(DISTINCT process_id) AS n FROM kernel_events WHERE process_id <> {process}")[0][
        "n"
    ]
    if others:
        notes.append(
            f"{others + 1} processes ran kernels: the launches are counted in process {process}; ncu skips and"
            " profiles as many in each of them"
        )
    graphs = trace.dicts("SELECT count(*) AS n FROM graph_launches")[0]["n"]
    if graphs:
        notes.append(
            f"{graphs:,} CUDA graphs ran as a whole: their kernels are not in the trace, but ncu will count them;"
            " capture with --cuda-graph-trace=node to plan for them"
        )
    return notes
