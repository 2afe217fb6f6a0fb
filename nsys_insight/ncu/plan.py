"""Which launches of a trace to profile with ncu, and the command that does it.

ncu counts, process by process, the launches that match its filters, in the order in which they are launched. That order
is the order of the correlation ids; the kernels of one graph launch share an id and follow each other on the GPU.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import TraceError, UsageError
from nsys_insight.paths import catalog
from nsys_insight.sql.quoting import literal
from nsys_insight.text.secrets import MASK

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Sequence

    from nsys_insight.session.answer import Answer
    from nsys_insight.session.session import Session

BOUNDS = ("compute", "memory", "latency", "balanced", "unknown")
# Replays of each launch per section set (ncu 2025.3, H200); older GPUs need more.
PASSES = {"basic": 10, "detailed": 20, "full": 38}
# Most launches for the set `full`, and for `detailed`: profiling takes minutes, not hours.
_FULL_UP_TO, _DETAILED_UP_TO = 10, 50
# Launches of each kernel that are searched for the shortest run with all kernels.
_CANDIDATES = 2_000
COLUMNS = {
    "ncu_id": "ncu's number for the launch in the report",
    "planned": "Whether it is one of the requested kernels; others of the same function are profiled with them",
    "name": "The kernel",
    "grid": "Blocks in the grid, x, y and z",
    "block": "Threads in a block, x, y and z",
    "match_index": "Number among the launches that match the filters, from 0",
    "start_ns": "When it ran in the trace",
    "duration_ns": "Duration in the trace",
    "kernel_time_pct": "Share of kernel time of all launches of this kernel and configuration, in the range if any",
}
# Names that ncu's filter takes as they are: / , @ [ ] * and others are its operators.
_PLAIN_NAME = re.compile(r"(?!-)[\w .:-]+")
# Implementation by provenance, a column of `kernel_names`.
_IMPLEMENTATIONS = {
    "Triton": "triton", "Inductor": "inductor", "CUTLASS": "cutlass", "CuTe": "cute", "hand-written": "native",
}  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """A command, without the program that it profiles, and the launches that it will profile."""

    options: tuple[str, ...]
    answer: Answer
    sections: str
    count: int
    notes: tuple[str, ...]
    app: tuple[str, ...]

    def command(self, ncu: str = "ncu", app: tuple[str, ...] = ()) -> list[str]:
        """Return the whole command line."""
        return [ncu, *self.options, *(app or self.app or ("YOUR_PROGRAM",))]


def make(  # noqa: PLR0913 - what can be asked for
    trace: Session,
    *,
    kernels: tuple[str, ...] = (),
    bound: str | None = None,
    top: int = 3,
    sections: str | None = None,
    nvtx: str | None = None,
    report: str | None = None,
) -> Plan:
    """Plan the profiling of the hottest kernels, or of those whose name contains one of `kernels`.

    `bound` selects the kernels of one class (report `classify-kernels`). `nvtx` names a push/pop range to stay
    in; None takes the trace's own steps where it has some, an empty text none.

    Raises:
        TraceError: The trace has no kernels.
        UsageError: No kernel has such a name, or there is no such section set or range.
    """
    for flag, given, known in (("--set", sections, PASSES), ("--bound", bound, BOUNDS)):
        if given is not None and given not in known:
            raise UsageError(f"{flag} cannot be {given!r}", f"choose one of: {', '.join(known)}")
    scope, scoped = _step_range(trace) if nvtx is None else (nvtx, trace.scope(nvtx=nvtx) if nvtx else trace)
    configured = _configured(scoped)
    targets = _targets(scoped, configured, kernels, bound, top)
    if not targets and nvtx is None and scope:
        return make(trace, kernels=kernels, bound=bound, top=top, sections=sections, nvtx="", report=report)
    if not targets:
        raise _nothing(trace, kernels, bound)
    if scope and not _PLAIN_NAME.fullmatch(scope):
        raise UsageError(
            f"ncu's filter does not accept a range named {scope!r}", "give --nvtx '' to count all launches"
        )
    counted = _counted(scoped, targets)
    first, last = _window(scoped, counted, len(targets), _steady_window(trace, targets[0]["process_id"]))
    answer = scoped.query(_launches(configured, counted, (first, last)))
    answer = replace(
        answer,
        columns=tuple(replace(column, description=COLUMNS[column.name]) for column in answer.columns),
        report="ncu plan",
        title="Launches that ncu will profile",
    )
    count = last - first + 1
    sections = sections or sections_for(count)
    options, notes = _options(trace, scope, targets, sections)
    options += ["--launch-skip", str(first), "--launch-count", str(count)]
    options += ["--force-overwrite", "--export", report or re.sub(r"\.(nsys-rep|qdrep|sqlite)$", "", trace.path.name)]
    each = ", ".join(f"{name} {passes}" for name, passes in PASSES.items())
    notes += [
        f"ncu replays each launch: {count:,} x about {PASSES[sections]} passes for the section set {sections} ({each})",
        "--clock-control none leaves the clocks as the program sees them; without it kernels run at base clock",
    ]
    app, folder = _recorded_command(trace)
    if folder:
        notes.append(f"the program ran in {folder}")
    if any(MASK in word for word in app):
        notes.append(f"{MASK} replaces what looks like a secret in the program's command line: insert the secret there")
    if not app:
        notes.append("the trace does not say how the program was started: replace YOUR_PROGRAM with its command line")
    return Plan(tuple(options), answer, sections, count, tuple(notes), app)


def sections_for(count: int) -> str:
    """The richest section set that so many launches allow."""
    return "full" if count <= _FULL_UP_TO else "detailed" if count <= _DETAILED_UP_TO else "basic"


def _options(trace: Session, scope: str, targets: list[dict[str, Any]], sections: str) -> tuple[list[str], list[str]]:
    """The options that make ncu see the launches that the trace has, and notes about them."""
    notes = _count_warnings(trace, targets[0]["process_id"])
    options = ["--target-processes", "all", "--set", sections, "--clock-control", "none"]
    options += ["--kernel-name-base", "function", "--kernel-name", _name_filter(targets)]
    if scope:
        options += ["--nvtx", "--nvtx-include", f"{_nvtx_domain(trace, scope)}{scope}/"]
    if _starts_profiler(trace):
        options += ["--profile-from-start", "off"]
        notes.append("the program calls cudaProfilerStart: launches are counted from there, as in the trace")
    if waiting := [target["short_name"] for target in targets if target["family"] == "comm"]:
        notes.append(
            f"{', '.join(waiting)} communicates: replayed alone it waits for its peers forever (deadlock); profile it"
            " with --replay-mode application, or leave it out"
        )
    notes += _preparation_steps({target["provenance"] for target in targets})
    if any(target["graph_node_id"] for target in targets):
        options += ["--graph-profiling", "node"]
        notes.append("the kernels run in CUDA graphs: ncu profiles their nodes one by one")
    return options, notes


def _configured(trace: Session) -> str:
    """Make a table of the kernels by configuration, and return its name."""
    return trace.query(
        """SELECT process_id, name_id, short_name_id, grid_x, grid_y, grid_z, block_x, block_y, block_z,
               sum(duration_ns)::BIGINT AS total_ns, max(graph_node_id) AS graph_node_id
           FROM kernel_events GROUP BY ALL"""
    ).table


def _targets(
    trace: Session, configured: str, kernels: tuple[str, ...], bound: str | None, top: int
) -> list[dict[str, Any]]:
    """The kernels to profile, each in the configuration that takes most time, the hottest first.

    All are of one process, the busiest: ncu counts by process. Kernels that communicate are none of them unless they
    are asked for by name: ncu replays a kernel alone, and it would wait for its peers forever.
    """
    wanted = " OR ".join(f"contains(lower(s.name), {literal(kernel.lower())})" for kernel in kernels) or "true"
    if not kernels:
        wanted = "s.name_id NOT IN (SELECT name_id FROM kernel_names WHERE family = 'comm')"
    if bound is not None:
        wanted = f"""({wanted}) AND (
            s.name, grid_x || 'x' || grid_y || 'x' || grid_z, block_x || 'x' || block_y || 'x' || block_z
        ) IN (SELECT name, grid, block FROM {trace.answer("classify-kernels").table} WHERE bound = {literal(bound)})"""
    return trace.dicts(
        f"""
        WITH shared AS (
            SELECT c.*, s.name, b.name AS short_name, f.family, f.provenance,
                sum(total_ns) OVER (PARTITION BY process_id, c.name_id) AS name_ns,
                sum(total_ns) OVER (PARTITION BY process_id) AS process_ns,
                row_number() OVER (PARTITION BY process_id, c.name_id
                    ORDER BY total_ns DESC, grid_x, grid_y, grid_z, block_x, block_y, block_z) AS place
            FROM {configured} AS c
            JOIN strings AS s ON s.name_id = c.name_id
            JOIN strings AS b ON b.name_id = c.short_name_id
            LEFT JOIN kernel_names AS f ON f.name_id = c.name_id
            WHERE {wanted}
        )
        SELECT * FROM shared
        WHERE place = 1 AND process_id = (SELECT process_id FROM shared ORDER BY process_ns DESC, process_id LIMIT 1)
        ORDER BY name_ns DESC, name LIMIT {int(top)}""",
    )


def _counted(trace: Session, targets: list[dict[str, Any]]) -> str:
    """Make a table of the launches that the filters let through, numbered as ncu numbers them; return its name."""
    names = ", ".join(str(target["short_name_id"]) for target in targets)
    which = " ".join(f"WHEN {_is(target)} THEN {place}" for place, target in enumerate(targets))
    return trace.query(
        f"""
        SELECT row_number() OVER (PARTITION BY process_id ORDER BY correlation_id, start_ns) - 1 AS match_index, *
        FROM (
            SELECT (CASE {which} END)::UTINYINT AS target, process_id, correlation_id, start_ns
            FROM kernel_events WHERE process_id = {targets[0]["process_id"]} AND short_name_id IN ({names})
        )"""
    ).table


def _is(target: dict[str, Any]) -> str:
    columns = ("name_id", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
    return "(" + " AND ".join(f"{column} = {target[column]}" for column in columns) + ")"


def _window(trace: Session, counted: str, targets: int, settled: tuple[int, int] | None) -> tuple[int, int]:
    """The shortest run of counted launches that has all targets: if it can be, where the program has settled.

    Without steps that is the second half of all launches.
    """
    has_settled = f"correlation_id >= (SELECT (min(correlation_id) + max(correlation_id)) / 2 FROM {counted})"
    if settled:
        has_settled = f"start_ns >= {settled[0]} AND start_ns < {settled[1]}"
    found = trace.dicts(
        f"""
        WITH marked AS (
            SELECT match_index, target, {has_settled} AS has_settled FROM {counted} WHERE target IS NOT NULL
        )
        SELECT * FROM marked
        QUALIFY row_number() OVER (PARTITION BY target, has_settled ORDER BY match_index) <= {_CANDIDATES}
        ORDER BY match_index""",
    )
    after = [row for row in found if row["has_settled"]]
    candidates = after if len({row["target"] for row in after}) == targets else found
    best = shortest_run(((row["match_index"], row["target"]) for row in candidates), targets)
    if best is None:
        raise TraceError("the requested kernels are too far apart for one command", "name fewer: --kernel NAME")
    return best


def shortest_run(launches: Iterable[tuple[int, Hashable]], targets: int) -> tuple[int, int] | None:
    """The first and last index of the shortest run that has all targets; None if no run has.

    Args:
        launches: The index and target of each launch of a target, in the order of the indexes.
        targets: How many targets there are.
    """
    last: dict[Hashable, int] = {}
    best: tuple[int, int] | None = None
    for index, target in launches:
        last[target] = index
        first = min(last.values())
        if len(last) == targets and (best is None or index - first < best[1] - best[0]):
            best = first, index
    return best


def _launches(configured: str, counted: str, window: tuple[int, int]) -> str:
    """SQL for the launches of a window, as the plan shows them."""
    return f"""
        SELECT
            c.match_index - {window[0]} AS ncu_id,
            c.target IS NOT NULL AS planned,
            s.name,
            t.grid_x || 'x' || t.grid_y || 'x' || t.grid_z AS grid,
            t.block_x || 'x' || t.block_y || 'x' || t.block_z AS block,
            c.match_index, c.start_ns, k.duration_ns,
            100.0 * t.total_ns / nullif((SELECT sum(total_ns) FROM {configured}), 0) AS kernel_time_pct
        FROM (FROM {counted} WHERE match_index BETWEEN {window[0]} AND {window[1]}) AS c
        JOIN kernel_events AS k USING (process_id, correlation_id, start_ns)
        JOIN {configured} AS t USING (process_id, name_id, grid_x, grid_y, grid_z, block_x, block_y, block_z)
        LEFT JOIN strings AS s USING (name_id)
        ORDER BY c.match_index"""


def _name_filter(targets: list[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(re.escape(target["short_name"]) for target in targets))
    return f"regex:^{names[0]}$" if len(names) == 1 else f"regex:^({'|'.join(names)})$"


def _nothing(trace: Session, kernels: tuple[str, ...], bound: str | None) -> UsageError | TraceError:
    named = "SELECT DISTINCT short_name AS name FROM kernels WHERE short_name IS NOT NULL ORDER BY name LIMIT 8"
    names = [row["name"] for row in trace.dicts(named)]
    if not names:
        return TraceError(
            f"{trace.path} has no kernels with names", "capture with: nsys profile -t cuda --cuda-graph-trace=node"
        )
    if bound is None and not kernels:
        return TraceError(
            f"all kernels of {trace.path} communicate: replayed alone they wait for their peers forever",
            "name one that you can profile with ncu's --replay-mode application: --kernel NAME",
        )
    if bound is not None:
        return UsageError(f"no such kernel's class is {bound}", "nsys-insight classify-kernels lists them")
    return UsageError(f"no kernel's name contains {' or '.join(map(repr, kernels))}", f"there are: {', '.join(names)}")


def shell(command: Sequence[str]) -> str:
    """Quote a command for a shell; control characters become escapes, so that it can be printed."""
    return " ".join(map(_quoted, command))


def _quoted(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    # Bash, zsh and ksh know it, and POSIX since 2024. No argument holds a NUL.
    return "$'" + "".join(map(_escaped, word.replace("\0", ""))) + "'"


def _escaped(char: str) -> str:
    if char in "\\'":
        return f"\\{char}"
    return char if char.isprintable() else "".join(f"\\{byte:03o}" for byte in char.encode())


def _step_range(trace: Session) -> tuple[str, Session]:
    """Return the range that marks the steps, as all reports find them, and the trace narrowed to it.

    The name is empty and the trace whole if steps are found in another way, or if ncu cannot filter by the name: it
    has numbers, or another range is around it.
    """
    if trace.about()["scope"]:
        return "", trace
    found = trace.dicts(
        """SELECT pattern FROM step_method
           WHERE method = 'nvtx' AND NOT EXISTS (FROM nvtx_nesting WHERE name = pattern AND depth > 1)""",
    )
    name = found[0]["pattern"] if found else ""
    return (name, trace.scope(nvtx=name)) if _PLAIN_NAME.fullmatch(name) else ("", trace)


def _steady_window(trace: Session, process: int) -> tuple[int, int] | None:
    """Return when the second half of the steady steps began and ended on the GPU; None without steps.

    There, caches are warm, allocators are settled and lengths are typical.
    """
    found = trace.dicts(
        f"""SELECT quantile_disc(start_ns, 0.5) AS start_ns, max(end_ns) AS end_ns
            FROM steps WHERE phase = 'steady' AND process_id = {process}""",
    )[0]
    return None if found["start_ns"] is None else (found["start_ns"], found["end_ns"])


def _nvtx_domain(trace: Session, name: str) -> str:
    """The range's NVTX domain as ncu's filter wants it; nothing for the default domain."""
    found = trace.dicts(f"SELECT DISTINCT domain FROM nvtx_ranges WHERE name = {literal(name)} ORDER BY domain LIMIT 1")
    return f"{found[0]['domain']}@" if found and found[0]["domain"] else ""


def _starts_profiler(trace: Session) -> bool:
    """Whether the capture began at a cudaProfilerStart, so that ncu must begin there too."""
    return bool(
        trace.dicts(
            """SELECT 1 FROM api_calls WHERE regexp_matches(name, '^cu(da)?ProfilerStart')
               AND start_ns <= (SELECT min(start_ns) FROM kernel_events)""",
        )
    )


def _recorded_command(trace: Session) -> tuple[tuple[str, ...], str]:
    """The program's command line, with its secrets masked, and folder as recorded; never its environment."""
    found = trace.dicts(
        """SELECT name, value FROM capture
           WHERE regexp_matches(name, '^PROCESS_0:(COMMAND|ARGUMENT_\\d+|WORKING_DIR)$')""",
    )
    recorded = {row["name"].removeprefix("PROCESS_0:"): row["value"] for row in found}
    if not recorded.get("COMMAND"):
        return (), ""
    arguments = sorted((name for name in recorded if name.startswith("ARGUMENT_")), key=lambda name: int(name[9:]))
    return (recorded["COMMAND"], *(recorded[name] or "" for name in arguments)), recorded.get("WORKING_DIR") or ""


def _count_warnings(trace: Session, process: int) -> list[str]:
    """Reasons why ncu may count launches differently from the trace."""
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


def _preparation_steps(provenances: Collection[str | None]) -> list[str]:
    """What to do before profiling kernels of these implementations (`queries/catalog/ncu_types.toml`)."""
    meant = {_IMPLEMENTATIONS.get(one or "") for one in provenances}
    return [
        f"{one['implementation']}: {'; '.join(one['steps'])}; all of the kind: --kernel-name {one['wildcard']}"
        for one in catalog("ncu_types")["types"]
        if one["implementation"] in meant
    ]
