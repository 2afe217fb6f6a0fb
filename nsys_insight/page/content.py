"""What the page contains: which reports, in which order, the figures at its head, and what Nsight Compute measured."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.diagnose.diagnosis import Then, diagnose
from nsys_insight.errors import InsightError
from nsys_insight.packs import command_line
from nsys_insight.packs.library import built_in, by_topic
from nsys_insight.page.ranks import ranks
from nsys_insight.session.answer import Column, of_rows
from nsys_insight.text.cells import printable
from nsys_insight.text.units import label, value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsys_insight.diagnose.diagnosis import Diagnosis
    from nsys_insight.ncu.report import Priority
    from nsys_insight.packs.library import Topic
    from nsys_insight.packs.pack import Pack
    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.page.ranks import Ranks
    from nsys_insight.session.answer import Answer
    from nsys_insight.session.session import Session

# GPUs that are named at the head.
_GPUS = 4
NCU_READING = (
    "Sorted by what may save the most time of the trace. A saving is ncu's own estimate, or at most the "
    "kernel's distance to its ceiling; savings of one kernel overlap."
)
NCU_COLUMNS = (
    Column("finding", "VARCHAR", "What was found"),
    Column("name", "VARCHAR", "The kernel"),
    Column("severity", "VARCHAR", "critical, warning, info"),
    Column(
        "saving_ns",
        "DOUBLE",
        "What may be saved: in the trace if the kernel is in it, else in the launches that ncu profiled",
    ),
    Column("saving_pct", "DOUBLE", "The same as a share of the kernel's time"),
    Column("evidence", "VARCHAR", "The metrics that prove it"),
    Column("action", "VARCHAR", "What to do"),
    Column("basis", "VARCHAR", "Source of the saving"),
)


@dataclass(frozen=True)
class Report:
    """A report on the page: its pack and its answer."""

    pack: Pack
    answer: Answer

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not self.answer.row_count


class Figure(NamedTuple):
    """A number at the head of the page."""

    text: str
    label: str
    more: str = ""


@dataclass(frozen=True)
class Content:
    """All answers, in a scope and with steps found as the options say.

    `facts` are sentences about the trace, `measured` are findings of ncu's data where there are any, `ranks` are
    pictures of a run of several. Of several traces all but these is of the rank that the diagnosis is about.
    """

    path: str
    file: str
    diagnosis: Diagnosis
    scope: dict[str, Any]
    steps: StepOptions
    facts: list[str]
    figures: list[Figure]
    reports: dict[str, Report]
    measured: Answer | None = None
    ranks: Ranks | None = None

    def command(self, report: str) -> str:
        """What to type to see all of a report."""
        return command_line.command(report, self.path, self.scope, self.steps.taken_by(built_in()[report]))

    @property
    def piece(self) -> str:
        """What to type for a page of a piece of the run, but for its window; "" where one narrows it already."""
        if {"from_ns", "to_ns"} & self.scope.keys():
            return ""
        return printable(command_line.command("report", self.path, self.scope, self.steps.given))

    @property
    def narrowed(self) -> str:
        """The flags of the scope and about steps, as typed."""
        return shlex.join(command_line.flags(self.scope, self.steps.given))

    @property
    def topics(self) -> dict[Topic, list[Report]]:
        """The reports by topic; of one rank, what is about several is none."""
        return {
            topic: found
            for topic, packs in by_topic().items()
            if (found := [self.reports[pack.name] for pack in packs if pack.name in self.reports])
        }


def gather(
    trace: Session, steps: StepOptions, sizes: dict[str, Any] | None = None, rows: Sequence[str] = ()
) -> Content:
    """Ask everything.

    Args:
        trace: The trace, in its scope, or those of the ranks of a run.
        steps: How steps are found.
        sizes: Parameters of the report `roofline`: how large the work is that kernels do.
        rows: Queries that the trace will be asked then.

    Raises:
        InsightError: Steps cannot be found as the options say, or the trace cannot be read.
    """
    packs = [pack for packs in by_topic().values() for pack in packs if pack.page]
    options: dict[str, dict[str, Any]] = {pack.name: {} for pack in packs} | {"roofline": sizes or {}}
    diagnosis = diagnose(trace, steps, Then([(pack, options[pack.name]) for pack in packs], rows))
    run = diagnosis.run
    pictures = ranks(trace, steps, run.sentence, run.notes) if run else None
    trace = one_of(trace, diagnosis)
    missing = [pack for pack in packs if pack.name not in diagnosis.answers]
    trace.ahead(((pack, options[pack.name]) for pack in missing), steps=steps)
    answers = diagnosis.answers
    reports = {
        pack.name: _report(trace, pack, {"steps": steps} | options[pack.name], answers.get(pack.name)) for pack in packs
    }
    return Content(
        path=str(trace.path),
        file=trace.path.name,
        diagnosis=diagnosis,
        scope=trace.about()["scope"],
        steps=steps,
        facts=[*_facts(reports["info"]), *filter(None, [trace.about().get("left_out")])],
        figures=_figures(reports["per-token"]) or _figures_of_trace(reports["info"]),
        reports=reports,
        measured=_measured(trace, reports["headroom"]),
        ranks=pictures,
    )


def head(info: Report) -> tuple[list[str], list[Figure]]:
    """What is known of a trace before any diagnosis: how it was captured, and the figures of the whole."""
    return _facts(info), _figures_of_trace(info)


def one_of(trace: Session, diagnosis: Diagnosis) -> Session:
    """Give of several traces that of the rank which stands for all."""
    if len(trace.paths) == 1 or diagnosis.run is None:
        return trace
    (found,) = trace.rows(f"SELECT trace FROM ranks WHERE rank = {diagnosis.run.rank}")
    return trace.only(trace.paths[trace.labels.index(found.trace)])


def sentences(text: str, most: int) -> str:
    """The first `most` sentences of a text."""
    return ". ".join(text.split(". ")[:most]).removesuffix(".") + "."


def _report(trace: Session, pack: Pack, options: dict[str, Any], known: Answer | None) -> Report:
    if known is not None:
        return Report(pack, known)
    try:
        return Report(pack, trace.answer(pack, **options))
    except InsightError as error:
        # A report that needs more memory or time than it may have is no reason to have none at all.
        return Report(pack, of_rows((), (), report=pack.name, title=pack.title, empty=error.message))


def _measured(trace: Session, headroom: Report) -> Answer | None:
    if trace.ncu is None:
        return None
    found = ncu_findings(trace.ncu, headroom.answer.dicts())
    return found if found.row_count else None


def _facts(info: Report) -> list[str]:
    """Where and how the trace was captured; never more of the environment than the report `info` says."""
    rows = info.answer.dicts()
    gpus = [row["detail"] for row in rows if row["metric"] == "gpu_busy_pct"]
    capture = {row["metric"]: row for row in rows if row["section"] == "capture"}
    facts = gpus[:_GPUS] + ([f"and {len(gpus) - _GPUS} more GPUs"] if len(gpus) > _GPUS else [])
    if "command" in capture:
        facts.append(f"command: {capture['command']['detail']}")
    if "capture_ns" in capture:
        facts.append(
            f"captured: {value('capture_ns', capture['capture_ns']['value'])}, {capture['capture_ns']['detail']}"
        )
    if "nsys_version" in capture:
        facts.append(f"nsys {capture['nsys_version']['detail']}")
    return [printable(fact) for fact in facts if fact]


def _figures(per_token: Report) -> list[Figure]:
    if per_token.is_empty:
        return []
    rows = {row["metric"]: row for row in per_token.answer.dicts()}

    def each(metric: str) -> str:
        return value(metric, rows[metric]["per_token"]) if metric in rows else "-"

    def share(metric: str) -> str:
        return value("share_pct", rows[metric]["wall_pct"]) if metric in rows else "-"

    return [
        Figure(each("wall_ns"), "wall per step", f"{each('tokens_per_s')} per second"),
        Figure(share("gpu_busy_ns"), "GPU busy", each("gpu_busy_ns")),
        Figure(share("gpu_idle_ns"), "GPU idle", each("gpu_idle_ns")),
        Figure(each("kernels"), "kernels per step", f"{each('kernel_avg_ns')} on average"),
        Figure(each("launch_calls"), "launch calls per step", each("api_launch_ns")),
        Figure(each("sync_points"), "waits per step", each("api_sync_ns")),
    ]


def _figures_of_trace(info: Report) -> list[Figure]:
    known = {row["metric"]: row["value"] for row in info.answer.dicts() if row["value"] is not None}
    wanted = (("wall_ns", "wall"), ("gpu_busy_pct", "GPU busy"), ("kernels", "kernels"), ("api_calls", "CUDA calls"))
    return [Figure(value(metric, known[metric]), label) for metric, label in wanted if metric in known]


def ncu_findings(store: Path, headroom: list[dict[str, Any]]) -> Answer:
    """Judge the kernels of a file that `ncu import` wrote; `headroom` are the rows of the report of that name."""
    from nsys_insight.ncu.data import NcuData
    from nsys_insight.ncu.report import Context, build

    with NcuData(store) as measured:
        rows = [_ncu_row(one) for one in build(measured, store.name, Context(headroom)).priorities]
    return of_rows(NCU_COLUMNS, rows, report="ncu report", title="What the Nsight Compute metrics show")


def _ncu_row(one: Priority) -> tuple[Any, ...]:
    finding = one.finding
    evidence = ", ".join(f"{label(column)} {value(column, given)}" for column, given in finding.evidence.items())
    return (
        finding.title, one.kernel.row["kernel"], finding.severity, one.saving_ns, one.saving_pct,
        evidence, finding.action, one.basis,
    )  # fmt: skip
