"""What a capture says about the program that was profiled: how it was started, its steps, what it hides."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nsys_insight.sqltext import literal

if TYPE_CHECKING:
    from nsys_insight.trace import Trace

# Names that ncu's filter takes as they are: / , @ [ ] * and others are its operators.
PLAIN_NAME = re.compile(r"[\w .:-]+")
# Share of kernel time from which a repeating range counts as the step.
STEP_SHARE = 0.5


def steps(trace: Trace) -> tuple[str, Trace]:
    """Find the range at the top that repeats and takes most time, and the trace narrowed to it: likely the steps.

    An empty name and the whole trace where there is none, or it holds less than half of the kernel time. Libraries mark
    their calls too, in domains of their own: those are no steps.
    """
    if trace.facts()["scope"]:
        return "", trace
    found = rows(
        trace,
        """SELECT name FROM nvtx_nesting WHERE depth = 1 AND name IS NOT NULL AND coalesce(domain, '') = ''
           GROUP BY name HAVING count(*) > 1 ORDER BY sum(duration_ns) DESC NULLS LAST, name LIMIT 1""",
    )
    if not found or not PLAIN_NAME.fullmatch(found[0]["name"]):
        return "", trace
    scoped = trace.scope(nvtx=found[0]["name"])
    held, whole = (
        rows(one, "SELECT sum(duration_ns)::BIGINT AS ns FROM kernel_events")[0]["ns"] or 0 for one in (scoped, trace)
    )
    return (found[0]["name"], scoped) if held and held >= STEP_SHARE * whole else ("", trace)


def domain(trace: Trace, name: str) -> str:
    """The range's NVTX domain as ncu's filter wants it; nothing for the default domain."""
    found = rows(trace, f"SELECT DISTINCT domain FROM nvtx_ranges WHERE name = {literal(name)} ORDER BY domain LIMIT 1")
    return f"{found[0]['domain']}@" if found and found[0]["domain"] else ""


def profiler_starts(trace: Trace) -> bool:
    """Whether the capture began at a cudaProfilerStart, so that ncu must begin there too."""
    return bool(
        rows(
            trace,
            """SELECT 1 FROM api_calls WHERE regexp_matches(name, '^cu(da)?ProfilerStart')
               AND start_ns <= (SELECT min(start_ns) FROM kernel_events)""",
        )
    )


def app(trace: Trace) -> tuple[tuple[str, ...], str]:
    """The program's command line and folder as the capture recorded them; never its environment."""
    found = rows(
        trace,
        """SELECT name, value FROM capture
           WHERE regexp_matches(name, '^PROCESS_0:(COMMAND|ARGUMENT_\\d+|WORKING_DIR)$')""",
    )
    said = {row["name"].removeprefix("PROCESS_0:"): row["value"] for row in found}
    if not said.get("COMMAND"):
        return (), ""
    arguments = sorted((name for name in said if name.startswith("ARGUMENT_")), key=lambda name: int(name[9:]))
    return (said["COMMAND"], *(said[name] or "" for name in arguments)), said.get("WORKING_DIR") or ""


def doubts(trace: Trace, process: int) -> list[str]:
    """What may make ncu count otherwise than the trace."""
    notes = []
    others = rows(trace, f"SELECT count(DISTINCT process_id) AS n FROM kernel_events WHERE process_id <> {process}")[0][
        "n"
    ]
    if others:
        notes.append(
            f"{others + 1} processes ran kernels: the launches are counted in process {process}; ncu skips and"
            " profiles as many in each of them"
        )
    graphs = rows(trace, "SELECT count(*) AS n FROM graph_launches")[0]["n"]
    if graphs:
        notes.append(
            f"{graphs:,} CUDA graphs ran as a whole: their kernels are not in the trace, but ncu will count them;"
            " capture with --cuda-graph-trace=node to plan for them"
        )
    return notes


def rows(trace: Trace, sql: str) -> list[dict[str, Any]]:
    """Ask a trace, and return the rows by column."""
    answer = trace.query(sql)
    names = [column.name for column in answer.columns]
    return [dict(zip(names, row, strict=True)) for row in answer.rows()]
