"""Findings, their rules in `queries/findings`, and the other parts of a diagnosis.

The header of a rule holds its words: what it looks for, the evidence as templates (`text.templates`), and the cure
for each framework. Its query returns numbers and names only. It reads the model's views and the answers of reports,
named `host_report` or `graph_candidates_report`: so its numbers equal those of the reports. Each row is a finding:

- `recoverable_ns`: the most time that may be saved per token. NULL if it is unknown, or occurs once in a trace.
- `wall_pct`: the share of the wall time that this is, or that the finding is about.
- `place`: where.
- `saving_low_ns` (optional): the least time that the cure saves, and `bounded_by`: what limits the saving.
- `cure_case` (optional): which of the cures in the header applies.
- `family` (optional): the family of this finding, if it is not that of the rule.
- `severity` (optional): the severity of this finding without recoverable time, if it is not that of the rule.
- `explains` (optional): what this finding explains, if it is not what the rule does.
- `entry` (optional): the texts of an entry of the catalog, which replace those of the rule, and its source.
- the columns that the templates name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nsys_insight.packs.rules import Rule, read_rules
from nsys_insight.sql.names import scan_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsys_insight.session.answer import Answer

_REPORT_SUFFIX = "_report"
# The family of failed calls: no other finding of such a run is reliable. And that of data that the trace lacks.
FAILED_FAMILY, CAPTURE_FAMILY = "failed", "capture"

# Texts for a program without a known framework, and which texts apply where a framework has none of its own.
ANY = "any"
FALLBACKS = {
    "inductor": ("pytorch", "python"), "pytorch": ("python",), "cupy": ("python",), "numba": ("python",),
    "openacc": ("fortran",), "openmp": ("fortran",), "kokkos": ("cuda",),
}  # fmt: skip
FRAMEWORKS = {
    "pytorch": "PyTorch", "inductor": "torch.compile", "jax": "JAX", "cupy": "CuPy", "numba": "Numba",
    "cuda": "CUDA C++", "openacc": "OpenACC", "openmp": "OpenMP", "fortran": "Fortran", "kokkos": "Kokkos",
    "sycl": "SYCL", "tensorrt": "TensorRT", "julia": "Julia", "python": "Python",
    ANY: "any program",
}  # fmt: skip
# Columns with a meaning of their own: they are not values of the evidence.
RESERVED_COLUMNS = (
    "recoverable_ns",
    "saving_low_ns",
    "wall_pct",
    "place",
    "bounded_by",
    "cure_case",
    "family",
    "severity",
    "explains",
    "entry",
)
EFFORTS = ("flag", "line", "function", "redesign")
NUMERICS = ("same", "rounding", "precision")


@dataclass(frozen=True, kw_only=True)
class FindingRule(Rule):
    """One rule file.

    `code`: NSI and three digits; the first one is the group (`GROUPS`).
    `family`: the diagnosis shows one finding of each family, with the others below it.
    `symptom`: of a rule without a specific cause, what its time is lost to. It is one of:

    - "late-host": the GPU is idle because the host launches late.
    - "start": the GPU is idle long before single operations start.
    - "wait": the host waits for the GPU.
    - "copy": copies take the time.
    - "kernel-time": kernels take the time.
    - "communication": communication takes the time.

    `evidence`: the template of the evidence, and `items` the templates of its lists.
    `cure`: the text for each framework (`FRAMEWORKS`), or for each `cure_case` a table of such texts.
    `caveat`: when the cure is wrong.
    `effort`: what the cure takes: a flag, a line, a function, a redesign.
    `numerics`: whether results stay the same, differ by rounding, or lose precision.
    `estimate`: how the saving is estimated.
    `links`: pages of the vendor's documentation.
    `example`: a trace that has it, as a path in the project.
    `explains`: the symptoms, and the names of other rules, whose findings are shown below this one: it is their cause.
    `blocks`: the symptoms whose cures it blocks, such as a wait in what could be a CUDA graph: a finding with a small
    saving is shown inside theirs as what to do first.
    `is_host_work`: whether its saving is work of the host other than launching, which nsys may or may not make longer.
    `shortens_kernels`: whether its cure (a graph, fusion) also saves a part of the kernels' own time.
    `overlaps`: whether other findings can be about the same time. The times of all other findings add up to at most
    the wall time.
    `share_of`: `wall_pct` is a share of the wall time of a step, or of the trace.
    `severity`: the severity of findings without recoverable time.
    `report`: the report that shows details.
    `is_cross_rank`: the rule is about all ranks of a run. `$tokens` in its query is the number of tokens per step.
    In the other rules, `$waiting_pct` is the share of the exposed communication in which the diagnosed rank waits for
    others; NULL for a single rank.
    `when`: a query over views and cheap reports. If it has no row, an expensive rule is skipped. `$shown_pct` in it is
    the minimum share of wall time of a finding.
    """

    code: str
    family: str
    meaning: str
    evidence: tuple[Any, ...]
    cure: dict[str, Any]
    caveat: str
    effort: str
    report: str
    numerics: str = "same"
    estimate: str = ""
    links: tuple[str, ...] = ()
    example: str = ""
    items: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    symptom: str | None = None
    explains: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    overlaps: bool = False
    share_of: str = "step"
    is_cross_rank: bool = False
    is_host_work: bool = False
    shortens_kernels: bool = False
    when: str = ""


def choose_cure(cure: Mapping[str, Any], framework: str, case: str | None = None) -> tuple[str, str]:
    """Return the framework whose cure applies to a program, and its text, a template.

    Args:
        cure: The text for each framework, or for each case a table of such texts.
        framework: The framework of the program, as in the view `frameworks`.
        case: Which cure applies; None if there is one.
    """
    texts = cure[case] if case else cure
    candidates = (name for name in (framework, *FALLBACKS.get(framework, ())) if name in texts)
    cure_framework = next(candidates, ANY)
    return cure_framework, texts[cure_framework]


@dataclass(frozen=True)
class Cure:
    """What to do about a finding: the text for the program's framework, and what it takes and changes."""

    framework: str
    text: str
    effort: str
    numerics: str


@dataclass(frozen=True)
class Share:
    """A part of the wall time, as `classify` names it. The shares of one diagnosis add up to 100."""

    part: str
    is_busy: bool
    time_ns: float
    wall_pct: float


@dataclass(frozen=True)
class Finding:
    """A problem of the run, or a fact about it.

    `recoverable_ns` is the most time that may be saved, per token or in the full scope (`Diagnosis.unit`), and
    `saving_low_ns` the least, without nsys as far as that is known. `profiled_ns` is the most under nsys. None if it is
    unknown. `bounded_by` is what limits the saving. `values` are the numbers of the row in base units. `wall_pct` is
    the share of the wall time (`share_of` a step or the trace) that this is, or that the finding is about. If it
    `overlaps`, the time is also in other findings. `report` shows details, `command` prints it. `symptom`, `explains`
    and `blocks` are those of its rule. `source` is where its cure is documented or was measured, if the rule does not
    say that. `also` are the findings below it: its symptoms, and the others of its family.
    """

    code: str
    name: str
    title: str
    severity: str
    family: str
    recoverable_ns: float | None
    saving_low_ns: float | None
    profiled_ns: float | None
    bounded_by: str | None
    wall_pct: float | None
    share_of: str
    overlaps: bool
    place: str | None
    evidence: str
    values: dict[str, float]
    meaning: str
    cure: Cure
    caveat: str
    report: str
    command: str
    symptom: str | None = None
    explains: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    source: str | None = None
    also: tuple[Finding, ...] = ()

    @property
    def action(self) -> str:
        """Return what to do, in the words of the program's framework."""
        return self.cure.text

    def does_explain(self, finding: Finding) -> bool:
        """Return whether this is a cause of another finding."""
        return finding.name in self.explains or finding.symptom in self.explains

    def is_blocked_by(self, finding: Finding) -> bool:
        """Return whether one of the findings below this one must be gone before the cure of this one."""
        return finding.does_block(self)

    def does_block(self, finding: Finding) -> bool:
        """Return whether the cure of another finding needs this one to be gone."""
        return finding.name in self.blocks or finding.symptom in self.blocks


@dataclass(frozen=True)
class UnassessedQuestion:
    """A question that this trace cannot answer, and how to capture the data for it."""

    subject: str
    remedy: str


@dataclass(frozen=True)
class RunOfRanks:
    """The ranks of a run, and the rank that is diagnosed: it delays the others.

    `verdict` is late, moving or even (see the view `rank_run`). `rank` is the diagnosed rank. `waiting_share` is the
    share of its exposed communication in which it waits for others. `notes` qualify the numbers.
    """

    sentence: str
    verdict: str
    ranks: int
    rank: int
    waiting_share: float
    notes: tuple[str, ...]


@dataclass(frozen=True)
class LeftOut:
    """What a choice of rules left out of a diagnosis.

    `file` is the settings file that chooses, "" for the flags --select and --ignore, and `select` and `ignore` are the
    names in it. `rules` are the codes of the rules that are off. `findings` are what these rules find in the trace;
    None if they were not evaluated, as with flags.
    """

    file: str
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    rules: tuple[str, ...]
    findings: tuple[Finding, ...] | None = None


@dataclass(frozen=True)
class Unprofiled:
    """What is known of the step (or token) without nsys, as in the view `unprofiled_step`.

    `wall_ns` is the mean of the steps under nsys, and `busy_ns` the mean time in which the GPU is busy in them.
    `sentence` is its time in words, after its time under nsys; None if it takes as long, or that is unknown. `unknown`
    says why it is unknown, although the host is late, and `misfit` why --step-time is not used.
    """

    source: str | None
    step_ns: float
    wall_ns: float
    busy_ns: float
    low_ns: float | None
    likely_ns: float | None
    high_ns: float | None
    late_ns: float
    late_low_ns: float | None
    late_high_ns: float | None
    sentence: str | None
    unknown: str | None
    misfit: str | None

    @property
    def stretch(self) -> float:
        """Return how many times as long as without nsys, at most, the step takes: shares of it grow by this factor.

        A measured time is a mean, as programs measure it.
        """
        nsys_ns = self.wall_ns if self.is_measured else self.step_ns
        return nsys_ns / self.high_ns if self.sentence and self.high_ns else 1.0

    @property
    def is_known(self) -> bool:
        """Return whether the time of the step without nsys is measured or estimated."""
        return self.source is not None

    @property
    def is_measured(self) -> bool:
        """Return whether the time of the step without nsys was measured."""
        return self.source == "measured"

    def idle_left(self, time_ns: float | None) -> float:
        """Return the share of the GPU's idle time that is left in a step of this time: its work takes as long."""
        idle_ns = self.wall_ns - self.busy_ns
        return min(max((time_ns - self.busy_ns) / idle_ns, 0.0), 1.0) if time_ns and idle_ns > 0 else 1.0


@dataclass(frozen=True, kw_only=True)
class Headline:
    """What bounds a run, and what its time goes to.

    `framework` is that of the program, as in the view `frameworks`. `unit` is the unit that times refer to: step, token
    or trace. `step_source` says in brief how the steps were found. `ahead_pct` is the share of the launch calls that
    return 10 µs or more before their operation starts, in steady steps. `graph_pct` is the share of the GPU time in
    graphs that were traced without their kernels; None without any. `unprofiled` is the step without nsys, and
    `unprofiled_verdict` what bounds it; None if that is unknown. `top_kernel` is the kernel with the most time, and its
    share of the kernel time in percent.
    """

    framework: str
    verdict: str
    unit: str
    wall_ns: float | None
    tokens_per_s: float | None
    shares: tuple[Share, ...]
    steps: dict[str, Any]
    step_source: str | None
    ahead_pct: float | None
    graph_pct: float | None
    unprofiled: Unprofiled | None
    unprofiled_verdict: str | None
    unassessed: tuple[UnassessedQuestion, ...]
    top_kernel: tuple[str, float] | None
    notes: tuple[str, ...]

    @property
    def busy_pct(self) -> float:
        """Return the share of the wall time in which the GPU was busy, in %: a mean over the GPUs."""
        return sum(share.wall_pct for share in self.shares if share.is_busy)


@dataclass(frozen=True, kw_only=True)
class DiagnosisResult(Headline):
    """The results of a diagnosis: its headline and its findings.

    `status` is one of:

    - "findings"
    - "healthy": the GPU is busy nearly all the time with recorded work that is known to be efficient, the host launches
      ahead, and no finding has a relevant saving.
    - "unjudged": the same, but less of the GPU time is known to be efficient: something replaces `replaceable_pct` of
      it, and the trace does not show whether `unknown_pct` of it is efficient.
    - "unseen": the same, but the trace does not have the kernels that ran in that time.
    - "empty"

    `answers` are the answers of the reports that ran. `run` is about the ranks of a run. Everything else is then about
    one of these ranks. `left_out` is what a choice of rules left out; None if all rules were used.
    """

    status: str
    findings: tuple[Finding, ...]
    trace: dict[str, Any]
    params: dict[str, Any]
    answers: dict[str, Answer] = field(repr=False, default_factory=dict)
    run: RunOfRanks | None = None
    left_out: LeftOut | None = None
    unknown_pct: float | None = None
    replaceable_pct: float | None = None


def read_finding_rules() -> tuple[FindingRule, ...]:
    """Return the rules of all findings, in alphabetical order."""
    return read_rules("findings", FindingRule)


def bind_reports(sql: str, tables: Mapping[str, str]) -> str:
    """Bind the reports that a query reads to the tables that hold their answers."""
    ctes = ", ".join(f"{report.replace('-', '_')}_report AS (FROM {tables[report]})" for report in list_reports(sql))
    return f"WITH {ctes} SELECT * FROM ({sql}\n)" if ctes else sql


def list_reports(sql: str) -> list[str]:
    """Return the reports whose answers a query reads."""
    relations = scan_names(sql).model_relations
    return sorted(
        name.removesuffix(_REPORT_SUFFIX).replace("_", "-") for name in relations if name.endswith(_REPORT_SUFFIX)
    )
