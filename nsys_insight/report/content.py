"""What the report contains: which reports, in which order, and the figures at its head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight import packs, steps
from nsys_insight.answer import of_rows
from nsys_insight.errors import InsightError
from nsys_insight.ncu.shown import value
from nsys_insight.report.pictures import rows_of

if TYPE_CHECKING:
    from nsys_insight.answer import Answer
    from nsys_insight.diagnosis import Diagnosis
    from nsys_insight.trace import Trace


class Topic(NamedTuple):
    """Reports that belong together; `about` is one sentence on what they are about."""

    name: str
    title: str
    about: str
    reports: tuple[str, ...]


TOPICS = (
    Topic(
        "steps",
        "Step by step",
        "What one step costs, where that time goes, and whether all steps are alike.",
        ("per-token", "classify", "steps", "pace"),
    ),
    Topic(
        "idle",
        "Idle time",
        "When the GPU had nothing to do, and what the host was doing instead of giving it work.",
        ("idle", "host", "gaps", "gap-sizes", "launches", "graph-candidates"),
    ),
    Topic(
        "waits",
        "Waits, copies, allocations",
        "What makes the host wait, and what moves or allocates memory.",
        ("syncs", "copies", "mallocs"),
    ),
    Topic(
        "kernels",
        "Kernels",
        "Which kernels take the GPU's time, what bounds them, and which of them could be one.",
        ("top", "fusion", "classify-kernels", "launch-configs", "occupancy", "roofline", "headroom"),
    ),
    Topic("program", "Program and capture", "What was captured, and of what.", ("nvtx", "streams", "api", "info")),
)


# GPUs that are named at the head.
_GPUS = 4


@dataclass(frozen=True)
class Entry:
    """One report in the report: its pack and its answer."""

    pack: packs.Pack
    answer: Answer

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not self.answer.row_count


class Figure(NamedTuple):
    """A number at the head of the report."""

    text: str
    label: str
    more: str = ""


@dataclass(frozen=True)
class Content:
    """All answers, in a scope and with steps told as `asked`.

    `facts` are sentences about the trace, `measured` are findings of ncu's data where there are any.
    """

    path: str
    file: str
    diagnosis: Diagnosis
    scope: dict[str, Any]
    asked: dict[str, Any]
    facts: list[str]
    figures: list[Figure]
    entries: dict[str, Entry]
    measured: Answer | None = None

    def command(self, report: str) -> str:
        """What to type to see all of a report."""
        pack = packs.built_in()[report]
        takes = {**pack.params, **steps.params_of(pack.sql)}
        asked = {takes[name].flag: given for name, given in self.asked.items() if name in takes}
        return _shell("nsys-insight", report, self.path, **self._scope_flags, **asked)

    @property
    def narrowed(self) -> str:
        """The flags of the scope and about steps, as typed."""
        return _shell(**self._scope_flags, **{steps.PARAMS[name].flag: given for name, given in self.asked.items()})

    @property
    def _scope_flags(self) -> dict[str, Any]:
        return {f"--{name.removesuffix('_ns')}": given for name, given in self.scope.items()}


def gather(trace: Trace, asked: dict[str, Any], sizes: dict[str, Any] | None = None) -> Content:
    """Ask everything.

    Args:
        trace: The trace, in its scope.
        asked: Options by which steps are told.
        sizes: Parameters of the report `roofline`: how large the work is that kernels do.

    Raises:
        InsightError: Steps cannot be told as asked, or the trace cannot be read.
    """
    diagnosis = trace.diagnose(**asked)
    entries = {
        name: _entry(
            trace, packs.built_in()[name], asked if name != "roofline" else sizes or {}, diagnosis.answers.get(name)
        )
        for topic in TOPICS
        for name in topic.reports
    }
    return Content(
        path=str(trace.path),
        file=trace.path.name,
        diagnosis=diagnosis,
        scope=trace.facts()["scope"],
        asked={name: given for name, given in asked.items() if given is not None},
        facts=_facts(entries["info"]),
        figures=_figures(entries["per-token"]) or _figures_of_trace(entries["info"]),
        entries=entries,
        measured=_measured(trace, entries["headroom"]),
    )


def sentences(text: str, most: int) -> str:
    """The first `most` sentences of a text."""
    return ". ".join(text.split(". ")[:most]).removesuffix(".") + "."


def _entry(trace: Trace, pack: packs.Pack, asked: dict[str, Any], known: Answer | None) -> Entry:
    if known is not None:
        return Entry(pack, known)
    takes = {**pack.params, **steps.params_of(pack.sql)}
    try:
        return Entry(pack, trace.answer(pack, **{name: given for name, given in asked.items() if name in takes}))
    except InsightError as error:
        # A report that needs more memory or time than it may have is no reason to have none at all.
        return Entry(pack, of_rows((), (), report=pack.name, title=pack.title, empty=error.message))


def _measured(trace: Trace, headroom: Entry) -> Answer | None:
    if trace.ncu is None:
        return None
    from nsys_insight.report.measured import findings

    found = findings(trace.ncu, rows_of(headroom.answer))
    return found if found.row_count else None


def _shell(*words: str, **flags: Any) -> str:
    import shlex

    return shlex.join([*words, *(word for flag, given in flags.items() for word in (flag, str(given)))])


def _facts(info: Entry) -> list[str]:
    """Where and how the trace was captured; never more of the environment than the report `info` says."""
    rows = rows_of(info.answer)
    gpus = [row["detail"] for row in rows if row["metric"] == "gpu_busy_pct"]
    said = {row["metric"]: row for row in rows if row["section"] == "capture"}
    facts = gpus[:_GPUS] + ([f"and {len(gpus) - _GPUS} more GPUs"] if len(gpus) > _GPUS else [])
    if "command" in said:
        facts.append(f"command: {said['command']['detail']}")
    if "capture_ns" in said:
        facts.append(f"captured: {value('capture_ns', said['capture_ns']['value'])}, {said['capture_ns']['detail']}")
    if "nsys_version" in said:
        facts.append(f"nsys {said['nsys_version']['detail']}")
    return [fact for fact in facts if fact]


def _figures(per_token: Entry) -> list[Figure]:
    if per_token.is_empty:
        return []
    rows = {row["metric"]: row for row in rows_of(per_token.answer)}

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


def _figures_of_trace(info: Entry) -> list[Figure]:
    known = {row["metric"]: row["value"] for row in rows_of(info.answer) if row["value"] is not None}
    wanted = (("wall_ns", "wall"), ("gpu_busy_pct", "GPU busy"), ("kernels", "kernels"), ("api_calls", "CUDA calls"))
    return [Figure(value(metric, known[metric]), label) for metric, label in wanted if metric in known]
