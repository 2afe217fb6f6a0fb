"""A brief: what an expert needs to see of a run in one page. It has the numbers of reports, and the diagnosis.

`brief_text` writes it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nsys_insight.diagnose.diagnosis import Diagnosis, open_diagnosis
from nsys_insight.diagnose.evaluate import NO_LATER_QUERIES, LaterQueries
from nsys_insight.packs import library
from nsys_insight.paths import read_query
from nsys_insight.session.answer import Answer, Column, build_answer

if TYPE_CHECKING:
    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.session import Session

Rows = list[dict[str, Any]]
# The reports that have the operations and the calls of a step. The others are read for the diagnosis anyway.
_REPORTS = ("step-operations", "step-calls")
# The columns of a finding that the summary has.
_FINDING_COLUMNS = (
    "code", "title", "under", "recoverable_ns", "wall_pct", "of", "place", "evidence", "action", "command",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Brief:
    """What a page about a run shows.

    `operations`, `calls`, `info` and `host` are rows of the reports step-operations, step-calls, info and host. `loops`
    are the operations of the loops around the step; empty if NVTX ranges give the steps. `nvtx` are NVTX ranges by
    level, `collectives` those of a step. `devices` has the share of each GPU, and `ranks` the times of each rank; both
    are empty if there is only one. `program` has the number of processes and of threads that launch.
    """

    diagnosis: Diagnosis
    columns: tuple[Column, ...]
    program: dict[str, Any]
    info: Rows
    host: Rows
    operations: Rows
    calls: Rows
    loops: Rows
    nvtx: Rows
    collectives: Rows
    devices: Rows
    ranks: Rows

    def answer(self) -> Answer:
        """Return the page as data: the operations of a step as rows, and everything else as the summary."""
        diagnosis_answer = self.diagnosis.answer()
        findings = [{name: row[name] for name in _FINDING_COLUMNS} for row in diagnosis_answer.dicts()]
        parts = ("program", "info", "host", "calls", "loops", "nvtx", "collectives", "devices", "ranks")
        return build_answer(
            self.columns,
            [[row[column.name] for column in self.columns] for row in self.operations],
            report="brief",
            title=f"Brief: {self.diagnosis.verdict}",
            params=diagnosis_answer.params,
            notes=diagnosis_answer.notes,
            empty=diagnosis_answer.empty,
            trace=diagnosis_answer.trace,
            summary={
                **diagnosis_answer.summary,
                "findings": findings,
                **{part: getattr(self, part) for part in parts},
            },
        )


def read_brief(trace: Session, steps: StepOptions, later: LaterQueries = NO_LATER_QUERIES) -> Brief:
    """Read a brief of a trace, or of the ranks of a run: then of the rank that delays the others.

    `later` is prefetched together with the reports of the brief.

    Raises:
        UsageError: Several traces are open that share no collectives, or steps cannot be found as the options say.
    """
    packs = [library.get_pack(name) for name in _REPORTS]
    names = ("program", "devices", "nvtx")
    queries = {name: read_query(f"internal/diagnose/brief_{name}") for name in names}
    all_later = LaterQueries([*((pack, {}) for pack in packs), *later.reports], [*queries.values(), *later.queries])
    with open_diagnosis(trace, steps, all_later) as (diagnosis, reports):
        reports.add(["FROM info_report", "FROM host_report"])
        operations, calls = (reports.trace.answer(pack, steps=steps) for pack in packs)
        rows = {name: reports.trace.dicts(query, steps, is_built_in=True) for name, query in queries.items()}
        has_collectives = any(row["family"] == "comm" for row in operations.dicts()) or any(
            (row["name"] or "").startswith("MPI_") for row in rows["nvtx"]
        )
        # A program that marks its steps needs no search for loops.
        has_loops = diagnosis.steps["method"] in ("sequence", "graph")
        conditional = {"loops": has_loops, "collectives": has_collectives}
        rows |= {
            name: reports.trace.dicts(read_query(f"internal/diagnose/brief_{name}"), steps) if is_needed else []
            for name, is_needed in conditional.items()
        }
        brief = Brief(
            diagnosis=diagnosis,
            columns=operations.columns,
            program=rows["program"][0],
            info=reports.answers["info"].dicts(),
            host=reports.answers["host"].dicts(),
            operations=operations.dicts(),
            calls=calls.dicts(),
            loops=rows["loops"],
            nvtx=rows["nvtx"],
            collectives=rows["collectives"],
            devices=rows["devices"],
            ranks=[],
        )
    if not diagnosis.run:
        return brief
    return replace(brief, ranks=trace.dicts(read_query("internal/diagnose/brief_ranks"), steps))
