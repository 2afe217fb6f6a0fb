"""Choose the launches of a trace to profile with ncu, and write the command.

ncu counts the launches that match its filters, separately for each process, in launch order. That is the order of the
correlation ids. The kernels of one graph launch share an id; their order is that on the GPU.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import TraceError, UsageError
from nsys_insight.paths import read_catalog
from nsys_insight.session.answer import Answer, read_columns
from nsys_insight.sql.quoting import literal
from nsys_insight.text.secrets import MASK

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Sequence

    from nsys_insight.session.session import Session

BOUNDS = ("compute", "memory", "latency", "balanced", "unknown")
# Replay passes of each launch, by section set (ncu 2025.3, H200). Older GPUs need more.
REPLAY_PASSES = {"basic": 10, "detailed": 20, "full": 38}
# Most launches for the set `full`, and for `detailed`, so that profiling takes minutes, not hours.
_FULL_UP_TO, _DETAILED_UP_TO = 10, 50
# Launches of each kernel that take part in the search for the shortest run.
_CANDIDATES = 2_000
# Kernels that are equal in these columns are equal for ncu's filters. Each may be NULL.
_CONFIGURATION = ("name_id", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
COLUMNS = read_columns("ncu/launches")
# Names that ncu's filter takes literally. / , @ [ ] * and others are its operators.
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

    def build_command(self, ncu: str = "ncu", app: tuple[str, ...] = ()) -> list[str]:
        """Return the full command line."""
        return [ncu, *self.options, *(app or self.app or ("YOUR_PROGRAM",))]


def make(  # noqa: PLR0913 - flags
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

    `bound` selects the kernels of one class (report `classify-kernels`). `nvtx` names a push/pop range: only launches
    in it count. None takes the range that marks the trace's steps, if there is one; "" takes no range.

    Raises:
        TraceError: The trace has no kernels.
        UsageError: No kernel has such a name, or there is no such section set or range.
    """
    for flag, choice, choices in (("--set", sections, REPLAY_PASSES), ("--bound", bound, BOUNDS)):
        if choice is not None and choice not in choices:
            raise UsageError(f"{flag} cannot be {choice!r}", f"choose one of: {', '.join(choices)}")
    range_name, scoped_trace = (
        _find_step_range(trace) if nvtx is None else (nvtx, trace.scope(nvtx=nvtx) if nvtx else trace)
    )
    is_counted, left_out = _find_counted_kernels(trace)
    configurations = _create_configurations(scoped_trace, is_counted)
    targets = _find_targets(scoped_trace, configurations, kernels, bound, top)
    if not targets and nvtx is None and range_name:
        return make(trace, kernels=kernels, bound=bound, top=top, sections=sections, nvtx="", report=report)
    if not targets:
        raise _build_no_kernel_error(trace, kernels, bound, left_out)
    if range_name and not _PLAIN_NAME.fullmatch(range_name):
        raise UsageError(
            f"ncu's filter does not accept a range named {range_name!r}", "give --nvtx '' to count all launches"
        )
    matching_launches = _create_matching_launches(scoped_trace, targets, is_counted)
    first, last = _find_window(
        scoped_trace, matching_launches, len(targets), _find_steady_window(trace, targets[0]["process_id"])
    )
    answer = scoped_trace.query(_build_launch_query(configurations, matching_launches, (first, last)))
    answer = replace(answer, columns=COLUMNS, report="ncu plan", title="Launches that ncu will profile")
    count = last - first + 1
    sections = sections or choose_sections(count)
    options, notes = _build_options(trace, range_name, targets, sections)
    if left_out:
        notes.append(f"left out: {left_out}, which ncu profiles as a whole only: ncu --graph-profiling graph")
    options += ["--launch-skip", str(first), "--launch-count", str(count)]
    options += ["--force-overwrite", "--export", report or re.sub(r"\.(nsys-rep|qdrep|sqlite)$", "", trace.path.name)]
    pass_count = REPLAY_PASSES[sections]
    set_passes = ", ".join(f"{name} {passes}" for name, passes in REPLAY_PASSES.items())
    notes += [
        f"ncu replays each launch: {count:,} x about {pass_count} passes for the section set {sections} ({set_passes})",
        "--clock-control none leaves the clocks as the program sees them; without it kernels run at base clock",
    ]
    app, folder = _read_recorded_command(trace)
    if folder:
        notes.append(f"the program ran in {folder}")
    if any(MASK in word for word in app):
        notes.append(f"{MASK} replaces what looks like a secret in the program's command line: insert the secret there")
    if not app:
        notes.append("the trace does not say how the program was started: replace YOUR_PROGRAM with its command line")
    return Plan(tuple(options), answer, sections, count, tuple(notes), app)


def choose_sections(count: int) -> str:
    """Choose the richest section set that is practical for this number of launches."""
    return "full" if count <= _FULL_UP_TO else "detailed" if count <= _DETAILED_UP_TO else "basic"


def _build_options(
    trace: Session, range_name: str, targets: list[dict[str, Any]], sections: str
) -> tuple[list[str], list[str]]:
    """Build the options that make ncu see the same launches as the trace, and notes about them."""
    notes = _list_count_warnings(trace, targets[0]["process_id"])
    options = ["--target-processes", "all", "--set", sections, "--clock-control", "none"]
    options += ["--kernel-name-base", "function", "--kernel-name", _build_name_filter(targets)]
    if range_name:
        options += ["--nvtx", "--nvtx-include", f"{_find_nvtx_domain(trace, range_name)}{range_name}/"]
    if _has_profiler_start(trace):
        options += ["--profile-from-start", "off"]
        notes.append("the program calls cudaProfilerStart: launches are counted from there, as in the trace")
    if collectives := [target["short_name"] for target in targets if target["family"] == "comm"]:
        notes.append(
            f"{', '.join(collectives)} communicates: replayed alone it waits for its peers forever (deadlock);"
            " profile it with --replay-mode application, or leave it out"
        )
    notes += _list_preparation_steps({target["provenance"] for target in targets})
    if any(target["graph_node_id"] for target in targets):
        options += ["--graph-profiling", "node"]
        notes.append("the kernels run in CUDA graphs: ncu profiles their nodes one by one")
    return options, notes


def _find_counted_kernels(trace: Session) -> tuple[str, str]:
    """Find the kernels that ncu counts: a condition on `kernel_events`, and in words those that it does not count.

    ncu 2025.3 profiles no single kernel of a graph with conditional nodes. The body of such a node is launched on
    the device, so its kernels have no correlation id. The upper half of a node's id is its graph.
    """
    graphs = trace.dicts(
        """SELECT DISTINCT process_id, graph_node_id >> 32 AS graph FROM kernel_events
           WHERE graph_node_id > 0 AND correlation_id = 0 ORDER BY ALL"""
    )
    if not graphs:
        return "true", ""
    graph_list = ", ".join(f"({graph['process_id']}, {graph['graph']})" for graph in graphs)
    is_in_graph = f"coalesce((process_id, graph_node_id >> 32) IN ({graph_list}), false)"
    count = trace.dicts(f"SELECT count(*) AS n FROM kernel_events WHERE {is_in_graph}")[0]["n"]
    return f"NOT {is_in_graph}", f"{count:,} kernels of CUDA graphs with conditional nodes"


def _create_configurations(trace: Session, is_counted: str) -> str:
    """Create a table of the kernels by configuration, and return its name."""
    return trace.query(
        f"""SELECT process_id, name_id, short_name_id, grid_x, grid_y, grid_z, block_x, block_y, block_z,
               sum(duration_ns)::BIGINT AS total_ns, max(graph_node_id) AS graph_node_id
           FROM kernel_events WHERE {is_counted} GROUP BY ALL"""
    ).table


def _find_targets(
    trace: Session, configurations: str, kernels: tuple[str, ...], bound: str | None, top: int
) -> list[dict[str, Any]]:
    """Find the kernels to profile, each in the configuration that takes most time, the hottest first.

    All are from the busiest process, because ncu counts by process. Kernels that communicate are left out unless
    requested by name: ncu replays a kernel alone, so it would wait for its peers forever.
    """
    condition = " OR ".join(f"contains(lower(s.name), {literal(kernel.lower())})" for kernel in kernels) or "true"
    if not kernels:
        condition = "s.name_id NOT IN (SELECT name_id FROM kernel_names WHERE family = 'comm')"
    if bound is not None:
        condition = f"""({condition}) AND (
            s.name, grid_x || 'x' || grid_y || 'x' || grid_z, block_x || 'x' || block_y || 'x' || block_z
        ) IN (SELECT name, grid, block FROM {trace.answer("classify-kernels").table} WHERE bound = {literal(bound)})"""
    return trace.dicts(
        f"""
        WITH ranked_configurations AS (
            SELECT c.*, s.name, b.name AS short_name, f.family, f.provenance,
                sum(total_ns) OVER (PARTITION BY process_id, c.name_id) AS name_ns,
                sum(total_ns) OVER (PARTITION BY process_id) AS process_ns,
                row_number() OVER (PARTITION BY process_id, c.name_id
                    ORDER BY total_ns DESC, grid_x, grid_y, grid_z, block_x, block_y, block_z) AS time_rank
            FROM {configurations} AS c
            JOIN strings AS s ON s.name_id = c.name_id
            JOIN strings AS b ON b.name_id = c.short_name_id
            LEFT JOIN kernel_names AS f ON f.name_id = c.name_id
            WHERE {condition}
        )
        SELECT * FROM ranked_configurations
        WHERE time_rank = 1 AND process_id = (
            SELECT process_id FROM ranked_configurations ORDER BY process_ns DESC, process_id LIMIT 1
        )
        ORDER BY name_ns DESC, name LIMIT {int(top)}"""
    )


def _create_matching_launches(trace: Session, targets: list[dict[str, Any]], is_counted: str) -> str:
    """Create a table of the launches that match the filters, numbered as by ncu, and return its name."""
    names = ", ".join(str(target["short_name_id"]) for target in targets)
    target_cases = " ".join(f"WHEN {_build_condition(target)} THEN {index}" for index, target in enumerate(targets))
    return trace.query(
        f"""
        SELECT row_number() OVER (PARTITION BY process_id ORDER BY correlation_id, start_ns) - 1 AS match_index, *
        FROM (
            SELECT (CASE {target_cases} END)::UTINYINT AS target, process_id, correlation_id, start_ns
            FROM kernel_events
            WHERE process_id = {targets[0]["process_id"]} AND short_name_id IN ({names}) AND {is_counted}
        )"""
    ).table


def _build_condition(target: dict[str, Any]) -> str:
    # A grid or a block that CUDA does not allow is unknown.
    tests = [f"{column} IS NOT DISTINCT FROM {literal(target[column])}" for column in _CONFIGURATION]
    return f"({' AND '.join(tests)})"


def _find_window(
    trace: Session, matching_launches: str, target_count: int, steady_window: tuple[int, int] | None
) -> tuple[int, int]:
    """Find the shortest run of matching launches that contains all targets, if possible in the steady part.

    The steady part is `steady_window`; without steps, it is the second half of all launches.
    """
    is_steady = f"correlation_id >= (SELECT (min(correlation_id) + max(correlation_id)) / 2 FROM {matching_launches})"
    if steady_window:
        is_steady = f"start_ns >= {steady_window[0]} AND start_ns < {steady_window[1]}"
    candidate_rows = trace.dicts(
        f"""
        WITH target_launches AS (
            SELECT match_index, target, {is_steady} AS is_steady FROM {matching_launches} WHERE target IS NOT NULL
        )
        SELECT * FROM target_launches
        QUALIFY row_number() OVER (PARTITION BY target, is_steady ORDER BY match_index) <= {_CANDIDATES}
        ORDER BY match_index"""
    )
    steady_rows = [row for row in candidate_rows if row["is_steady"]]
    candidates = steady_rows if len({row["target"] for row in steady_rows}) == target_count else candidate_rows
    best = find_shortest_run(((row["match_index"], row["target"]) for row in candidates), target_count)
    if best is None:
        raise TraceError("the requested kernels are too far apart for one command", "name fewer: --kernel NAME")
    return best


def find_shortest_run(launches: Iterable[tuple[int, Hashable]], target_count: int) -> tuple[int, int] | None:
    """Find the first and last index of the shortest run that contains all targets; None if there is no such run.

    Args:
        launches: The index and target of each launch of a target, in the order of the indexes.
        target_count: The number of targets.
    """
    last_index: dict[Hashable, int] = {}
    best: tuple[int, int] | None = None
    for index, target in launches:
        last_index[target] = index
        first_index = min(last_index.values())
        if len(last_index) == target_count and (best is None or index - first_index < best[1] - best[0]):
            best = first_index, index
    return best


def _build_launch_query(configurations: str, matching_launches: str, window: tuple[int, int]) -> str:
    """Build the SQL that lists the launches of a window, in the columns of the plan."""
    is_same_configuration = " AND ".join(f"t.{column} IS NOT DISTINCT FROM k.{column}" for column in _CONFIGURATION)
    return f"""
        SELECT
            c.match_index - {window[0]} AS ncu_id,
            c.target IS NOT NULL AS planned,
            s.name,
            t.grid_x || 'x' || t.grid_y || 'x' || t.grid_z AS grid,
            t.block_x || 'x' || t.block_y || 'x' || t.block_z AS block,
            c.match_index, c.start_ns, k.duration_ns,
            100.0 * t.total_ns / nullif((SELECT sum(total_ns) FROM {configurations}), 0) AS kernel_time_pct
        FROM (FROM {matching_launches} WHERE match_index BETWEEN {window[0]} AND {window[1]}) AS c
        JOIN kernel_events AS k USING (process_id, correlation_id, start_ns)
        JOIN {configurations} AS t ON t.process_id = k.process_id AND {is_same_configuration}
        LEFT JOIN strings AS s ON s.name_id = k.name_id
        ORDER BY c.match_index"""


def _build_name_filter(targets: list[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(re.escape(target["short_name"]) for target in targets))
    return f"regex:^{names[0]}$" if len(names) == 1 else f"regex:^({'|'.join(names)})$"


def _build_no_kernel_error(
    trace: Session, kernels: tuple[str, ...], bound: str | None, left_out: str
) -> UsageError | TraceError:
    name_query = "SELECT DISTINCT short_name AS name FROM kernels WHERE short_name IS NOT NULL ORDER BY name LIMIT 8"
    names = [row["name"] for row in trace.dicts(name_query)]
    if not names:
        return TraceError(
            f"{trace.path} has no kernels with names", "capture with: nsys profile -t cuda --cuda-graph-trace=node"
        )
    if left_out:
        return TraceError(
            f"ncu cannot profile these kernels one by one: the trace has {left_out}",
            "profile a whole graph: ncu --set full --graph-profiling graph --launch-count 1 PROGRAM",
        )
    if bound is None and not kernels:
        return TraceError(
            f"all kernels of {trace.path} communicate: replayed alone they wait for their peers forever",
            "name one that you can profile with ncu's --replay-mode application: --kernel NAME",
        )
    if bound is not None:
        return UsageError(f"no such kernel's class is {bound}", "nsys-insight classify-kernels lists them")
    return UsageError(f"no kernel's name contains {' or '.join(map(repr, kernels))}", f"there are: {', '.join(names)}")


def quote_command(command: Sequence[str]) -> str:
    """Quote a command for a shell; control characters become escapes, so that it can be printed."""
    return " ".join(map(_quote_word, command))


def _quote_word(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    # $'…' works in Bash, zsh and ksh, and in POSIX since 2024. No argument holds a NUL.
    return "$'" + "".join(map(_escape_char, word.replace("\0", ""))) + "'"


def _escape_char(char: str) -> str:
    if char in "\\'":
        return f"\\{char}"
    return char if char.isprintable() else "".join(f"\\{byte:03o}" for byte in char.encode())


def _find_step_range(trace: Session) -> tuple[str, Session]:
    """Return the range that marks the steps, as all reports find them, and the trace scoped to it.

    The name is "" and the trace unscoped if steps are found by another method, or if ncu cannot filter by the name:
    the name contains numbers, the range is nested in another one, or a step has several ranges.
    """
    if trace.describe_trace()["scope"]:
        return "", trace
    method_rows = trace.dicts(
        """SELECT pattern FROM step_method
           WHERE method = 'nvtx' AND pattern IN (SELECT name FROM nvtx_ranges)
               AND NOT EXISTS (FROM nvtx_nesting WHERE name = pattern AND depth > 1)"""
    )
    name = method_rows[0]["pattern"] if method_rows else ""
    return (name, trace.scope(nvtx=name)) if _PLAIN_NAME.fullmatch(name) else ("", trace)


def _find_steady_window(trace: Session, process: int) -> tuple[int, int] | None:
    """Return start and end of the second half of the steady steps on the GPU; None without steps.

    In this half, caches are warm, allocators are stable and lengths are typical.
    """
    window_row = trace.dicts(
        f"""SELECT quantile_disc(start_ns, 0.5) AS start_ns, max(end_ns) AS end_ns
            FROM steps WHERE phase = 'steady' AND process_id = {process}"""
    )[0]
    return None if window_row["start_ns"] is None else (window_row["start_ns"], window_row["end_ns"])


def _find_nvtx_domain(trace: Session, name: str) -> str:
    """Find the range's NVTX domain in the form of ncu's filter; "" for the default domain."""
    domain_rows = trace.dicts(
        f"SELECT DISTINCT domain FROM nvtx_ranges WHERE name = {literal(name)} ORDER BY domain LIMIT 1"
    )
    return f"{domain_rows[0]['domain']}@" if domain_rows and domain_rows[0]["domain"] else ""


def _has_profiler_start(trace: Session) -> bool:
    """Return whether the capture starts at a cudaProfilerStart, so that ncu must start there too."""
    return bool(
        trace.dicts(
            """SELECT 1 FROM api_calls WHERE regexp_matches(name, '^cu(da)?ProfilerStart')
               AND start_ns <= (SELECT min(start_ns) FROM kernel_events)"""
        )
    )


def _read_recorded_command(trace: Session) -> tuple[tuple[str, ...], str]:
    """Read the program's command line, with secrets masked, and its folder as recorded; never its environment."""
    capture_rows = trace.dicts(
        """SELECT name, value FROM capture
           WHERE regexp_matches(name, '^PROCESS_0:(COMMAND|ARGUMENT_\\d+|WORKING_DIR)$')"""
    )
    values = {row["name"].removeprefix("PROCESS_0:"): row["value"] for row in capture_rows}
    if not values.get("COMMAND"):
        return (), ""
    arguments = sorted((name for name in values if name.startswith("ARGUMENT_")), key=lambda name: int(name[9:]))
    return (values["COMMAND"], *(values[name] or "" for name in arguments)), values.get("WORKING_DIR") or ""


def _list_count_warnings(trace: Session, process: int) -> list[str]:
    """List reasons why ncu may count launches differently from the trace."""
    notes = []
    other_processes = trace.dicts(
        f"SELECT count(DISTINCT process_id) AS n FROM kernel_events WHERE process_id <> {process}"
    )[0]["n"]
    if other_processes:
        notes.append(
            f"{other_processes + 1} processes ran kernels: the launches are counted in process {process}; ncu skips and"
            " profiles as many in each of them"
        )
    graph_count = trace.dicts("SELECT count(*) AS n FROM graph_launches")[0]["n"]
    if graph_count:
        notes.append(
            f"{graph_count:,} CUDA graphs ran as a whole: their kernels are not in the trace, but ncu will count them;"
            " capture with --cuda-graph-trace=node to plan for them"
        )
    calls = trace.dicts("SELECT min(name) AS name FROM api_calls WHERE name LIKE 'cuStreamWaitValue%'")[0]["name"]
    if calls:
        notes.append(
            f"the program calls {calls}: if it writes the value after it launches a kernel that waits for it, ncu waits"
            " for that kernel forever; profile a run without these waits"
        )
    return notes


def _list_preparation_steps(provenances: Collection[str | None]) -> list[str]:
    """List what to do before profiling kernels of these implementations (`queries/catalog/ncu_types.toml`)."""
    implementations = {_IMPLEMENTATIONS.get(provenance or "") for provenance in provenances}
    return [
        f"{entry['implementation']}: {'; '.join(entry['steps'])}; all of the kind: --kernel-name {entry['wildcard']}"
        for entry in read_catalog("ncu_types")["types"]
        if entry["implementation"] in implementations
    ]
