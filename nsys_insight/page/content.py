"""The contents of the page: its reports in order, the figures at its head, and the findings of Nsight Compute."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.diagnose.brief import Brief, read_brief
from nsys_insight.diagnose.evaluate import LaterQueries
from nsys_insight.errors import InsightError
from nsys_insight.packs import flag_texts
from nsys_insight.packs.library import Topic, built_in_packs, packs_by_topic
from nsys_insight.page.ranks import Ranks, draw_ranks
from nsys_insight.session.answer import Answer, build_answer, read_columns
from nsys_insight.text.cells import printable
from nsys_insight.text.units import label, label_of, value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsys_insight.diagnose.diagnosis import Diagnosis
    from nsys_insight.diagnose.findings import Finding
    from nsys_insight.ncu.report import Priority
    from nsys_insight.packs.pack import Pack
    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.session import Session

_COLUMN_NAME = re.compile(r"\b[a-z]\w*_(?:ns|bytes|per_s)\b")
# GPUs listed at the head.
_MAX_GPUS = 4
NCU_READING = (
    "Sorted by what may save the most time of the trace. A saving is ncu's own estimate, or at most the "
    "kernel's distance to its ceiling; savings of one kernel overlap."
)
NCU_COLUMNS = read_columns("page/ncu_findings")


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
    detail: str = ""


@dataclass(frozen=True)
class Content:
    """All answers of the page, in one scope and with one set of step options.

    `facts` are sentences about the trace. `ncu_answer` holds the findings in ncu's data, if there are any. `ranks` are
    the pictures of a run of several ranks. With several traces, everything except these pictures is about the rank that
    the diagnosis analyzes.
    """

    path: str
    file: str
    brief: Brief
    scope: dict[str, Any]
    steps: StepOptions
    facts: list[str]
    figures: list[Figure]
    reports: dict[str, Report]
    ncu_answer: Answer | None = None
    ranks: Ranks | None = None

    @property
    def diagnosis(self) -> Diagnosis:
        """Return the diagnosis of the brief."""
        return self.brief.diagnosis

    def build_command(self, report: str) -> str:
        """Return the command that prints the full report, of the file in the folder in which it is run."""
        return flag_texts.write_command(
            report, self.file, self.scope, self.steps.explicit_for(built_in_packs()[report])
        )

    @property
    def diagnosis_to_share(self) -> Diagnosis:
        """Return the diagnosis with the file's name in its commands: other readers do not have the author's folders."""

        def shorten(finding: Finding) -> Finding:
            command = finding.command.replace(shlex.quote(self.path), shlex.quote(self.file))
            return replace(finding, command=command, also=tuple(map(shorten, finding.also)))

        return replace(self.diagnosis, findings=tuple(map(shorten, self.diagnosis.findings)))

    @property
    def window_command(self) -> str:
        """Return the command for a page of one window of the run, without the window. "" if the scope has a window."""
        if {"from_ns", "to_ns"} & self.scope.keys():
            return ""
        return printable(flag_texts.write_command("report", self.file, self.scope, self.steps.explicit))

    @property
    def scope_flags(self) -> str:
        """Return the flags of the scope and of the steps, as typed in a shell."""
        return shlex.join(flag_texts.format_flags(self.scope, self.steps.explicit))

    @property
    def topics(self) -> dict[Topic, list[Report]]:
        """Return the reports by topic. The page of one rank has no reports about several ranks."""
        return {
            topic: topic_reports
            for topic, packs in packs_by_topic().items()
            if (topic_reports := [self.reports[pack.name] for pack in packs if pack.name in self.reports])
        }


def gather(
    trace: Session, steps: StepOptions, sizes: dict[str, Any] | None = None, queries: Sequence[str] = ()
) -> Content:
    """Run all reports of the page.

    Args:
        trace: The trace, in its scope, or the traces of the ranks of a run.
        steps: How steps are found.
        sizes: Parameters of the report `roofline`: the problem sizes of kernels.
        queries: Queries that the page runs after the reports.

    Raises:
        InsightError: Steps cannot be found as the options say, or the trace cannot be read.
    """
    packs = [pack for packs in packs_by_topic().values() for pack in packs if pack.page]
    options: dict[str, dict[str, Any]] = {pack.name: {} for pack in packs} | {"roofline": sizes or {}}
    later = LaterQueries([(pack, options[pack.name]) for pack in packs], queries)
    brief = read_brief(trace, steps, later=later)
    diagnosis, run = brief.diagnosis, brief.diagnosis.run
    rank_pictures = draw_ranks(trace, steps, run.sentence, run.notes) if run else None
    trace = select_rank(trace, diagnosis)
    missing = [pack for pack in packs if pack.name not in diagnosis.answers]
    trace.prefetch(((pack, options[pack.name]) for pack in missing), steps=steps)
    answers = diagnosis.answers
    reports = {
        pack.name: _answer_report(trace, pack, {"steps": steps} | options[pack.name], answers.get(pack.name))
        for pack in packs
    }
    return Content(
        path=str(trace.path),
        file=trace.path.name,
        brief=brief,
        scope=trace.describe_trace()["scope"],
        steps=steps,
        facts=[*_describe_capture(reports["info"]), *filter(None, [trace.describe_trace().get("left_out")])],
        figures=_make_step_figures(reports["per-token"]) or _make_trace_figures(reports["info"]),
        reports=reports,
        ncu_answer=_read_ncu_findings(trace, reports["headroom"]),
        ranks=rank_pictures,
    )


def summarize_trace(info: Report) -> tuple[list[str], list[Figure]]:
    """Return what is known about a trace before any diagnosis: how it was captured, and its overall figures."""
    return _describe_capture(info), _make_trace_figures(info)


def select_rank(trace: Session, diagnosis: Diagnosis) -> Session:
    """Return the trace of the rank that the diagnosis analyzes. A single trace is returned unchanged."""
    if len(trace.paths) == 1 or diagnosis.run is None:
        return trace
    (rank_row,) = trace.rows(f"SELECT trace FROM ranks WHERE rank = {diagnosis.run.rank}")
    return trace.select_trace(trace.paths[trace.labels.index(rank_row.trace)])


def label_columns(prose: str) -> str:
    """Write the names of columns as tables show them: `gpu_idle_ns` is "gpu idle"."""
    return _COLUMN_NAME.sub(lambda match: label_of(match[0]), prose)


def take_sentences(text: str, count: int) -> str:
    """Return the first `count` sentences of a text."""
    return ". ".join(text.split(". ")[:count]).removesuffix(".") + "."


def _answer_report(trace: Session, pack: Pack, options: dict[str, Any], existing_answer: Answer | None) -> Report:
    if existing_answer is not None:
        return Report(pack, existing_answer)
    try:
        return Report(pack, trace.answer(pack, **options))
    except InsightError as error:
        # One report can exceed its memory or time limit. The page still shows the others.
        return Report(pack, build_answer((), (), report=pack.name, title=pack.title, empty=error.message))


def _read_ncu_findings(trace: Session, headroom: Report) -> Answer | None:
    if trace.ncu is None:
        return None
    findings = judge_ncu_kernels(trace.ncu, headroom.answer.dicts())
    return findings if findings.row_count else None


def _describe_capture(info: Report) -> list[str]:
    """Return sentences on where and how the trace was captured.

    They contain nothing about the environment that the report `info` does not show.
    """
    rows = info.answer.dicts()
    gpus = [row["detail"] for row in rows if row["metric"] == "gpu_busy_pct"]
    capture = {row["metric"]: row for row in rows if row["section"] == "capture"}
    facts = gpus[:_MAX_GPUS] + ([f"and {len(gpus) - _MAX_GPUS} more GPUs"] if len(gpus) > _MAX_GPUS else [])
    if "command" in capture:
        facts.append(f"command: {capture['command']['detail']}")
    if "capture_ns" in capture:
        facts.append(
            f"captured: {value('capture_ns', capture['capture_ns']['value'])}, {capture['capture_ns']['detail']}"
        )
    if "nsys_version" in capture:
        facts.append(f"nsys {capture['nsys_version']['detail']}")
    return [printable(fact) for fact in facts if fact]


def _make_step_figures(per_token: Report) -> list[Figure]:
    if per_token.is_empty:
        return []
    rows = {row["metric"]: row for row in per_token.answer.dicts()}

    def format_per_step(metric: str) -> str:
        return value(metric, rows[metric]["per_token"]) if metric in rows else "-"

    def format_share(metric: str) -> str:
        return value("share_pct", rows[metric]["wall_pct"]) if metric in rows else "-"

    return [
        Figure(format_per_step("wall_ns"), "step time", f"{format_per_step('tokens_per_s')} steps/s"),
        Figure(format_share("gpu_busy_ns"), "GPU busy", format_per_step("gpu_busy_ns")),
        Figure(format_share("gpu_idle_ns"), "GPU idle", format_per_step("gpu_idle_ns")),
        Figure(format_per_step("kernels"), "kernels per step", f"{format_per_step('kernel_avg_ns')} on average"),
        Figure(format_per_step("launch_calls"), "launch calls per step", format_per_step("api_launch_ns")),
        Figure(format_per_step("sync_points"), "sync points per step", format_per_step("api_sync_ns")),
    ]


def _make_trace_figures(info: Report) -> list[Figure]:
    metrics = {row["metric"]: row["value"] for row in info.answer.dicts() if row["value"] is not None}
    figures = (("wall_ns", "wall"), ("gpu_busy_pct", "GPU busy"), ("kernels", "kernels"), ("api_calls", "CUDA calls"))
    return [Figure(value(metric, metrics[metric]), label) for metric, label in figures if metric in metrics]


def judge_ncu_kernels(store: Path, headroom: list[dict[str, Any]]) -> Answer:
    """List the findings about the kernels of a file that `ncu import` wrote. `headroom`: the rows of that report."""
    from nsys_insight.ncu.data import NcuData
    from nsys_insight.ncu.report import Context, build

    with NcuData(store) as ncu_data:
        rows = [_make_ncu_row(priority) for priority in build(ncu_data, store.name, Context(headroom)).priorities]
    return build_answer(NCU_COLUMNS, rows, report="ncu report", title="What the Nsight Compute metrics show")


def _make_ncu_row(priority: Priority) -> tuple[Any, ...]:
    finding = priority.finding
    evidence = ", ".join(f"{label(metric)} {value(metric, number)}" for metric, number in finding.evidence.items())
    return (
        finding.title, priority.kernel.row["kernel"], finding.severity, priority.saving_ns, priority.saving_pct,
        evidence, finding.action, priority.basis,
    )  # fmt: skip
