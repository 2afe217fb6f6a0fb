"""Write the facts about the ranks of a run to their tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.facts.arrays import Ints, np
from nsys_insight.facts.ranks.matching import subtract_starts
from nsys_insight.paths import read_query
from nsys_insight.sql.parameters import bind
from nsys_insight.sql.rows import insert_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb

    from nsys_insight.facts.rank_numbers import RankNumbering
    from nsys_insight.facts.ranks.budget import HostTime, TimeBudget
    from nsys_insight.facts.ranks.judge import Delay, Verdict
    from nsys_insight.facts.ranks.messages import Messages
    from nsys_insight.facts.ranks.rank import Location, Rank
    from nsys_insight.facts.ranks.run import Collectives, Run


@dataclass(frozen=True)
class Windows:
    """The steps of a run, each from the end of the last collective before it to the end of its own last one.

    `unit` is step or collective. `numbers` are the numbers of the steps. `first` and `last` are rows of the collectives
    of the main group. `step_of` has the step of each of these rows, or -1. `counted_by` is the rank whose capture
    defines the steps.
    """

    unit: str
    numbers: Ints
    first: Ints
    last: Ints
    step_of: Ints
    counted_by: int | None = None


class Writer:
    """Fills the tables of facts about ranks, and translates indices of ranks to their numbers."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, numbering: RankNumbering) -> None:
        """Write to the connection's own catalog."""
        self._connection, self._numbers = connection, numbering.numbers

    def write_ranks(
        self, ranks: Sequence[Rank], labels: Sequence[str], run: Run | None, trace_starts: Sequence[int | None],
        locations: Sequence[Location],
    ) -> None:  # fmt: skip
        """Write the ranks, and how their clocks differ from that of the first trace."""
        first = run.ranks[run.main.group.ranks[0]].trace if run else 0
        rows = []
        for number, rank, location in zip(self._numbers, ranks, locations, strict=True):
            clock = run.clocks.get(rank.trace) if run else None
            later = subtract_starts(trace_starts[first], trace_starts[rank.trace])
            rows.append({
                "rank": number, "trace": labels[rank.trace], "process_id": rank.process_id,
                "device_id": rank.device_id, "gpu_id": rank.gpu_id, "nccl_kernels": len(rank.start),
                "nccl_ns": int((rank.end - rank.start).sum()),
                "clock_offset_ns": clock.offset + later if clock is not None and later is not None else None,
                "clock_drift_ppm": clock.drift * 1e6 if clock else None, "host_number": location.host,
                "gpu": location.gpu,
            })  # fmt: skip
        insert_rows(self._connection, "facts.ranks", rows)

    def write_run(self, **columns: Any) -> None:
        """Write the row about the entire run."""
        insert_rows(self._connection, "facts.rank_run", [columns])

    def write_delay(
        self, rank: int, delay: Delay, host: str | None, nvtx_range: str | None, comparison: Mapping[str, Any]
    ) -> None:
        """Write why a rank is late."""
        row = {
            "rank": self._numbers[rank], "cause": delay.cause, "more_busy_ns": delay.more_busy_ns,
            "more_idle_ns": delay.more_idle_ns, "busy_ratio": delay.busy_ratio, "host": host, "place": nvtx_range,
            **comparison,
        }  # fmt: skip
        insert_rows(self._connection, "facts.rank_delays", [row])

    def write_steps(
        self, run: Run, windows: Windows, budgets: Sequence[TimeBudget], verdict: Verdict,
        hosts: Sequence[HostTime | None],
    ) -> None:  # fmt: skip
        """Write where the time of each rank goes in each step."""
        for column, (rank, budget, host) in enumerate(zip(run.main.group.ranks, budgets, hosts, strict=True)):
            starts = run.main.end[windows.first, column]
            trace_starts = run.ranks[rank].end[run.main.group.kernels[windows.first, column]]
            self._fill("rank_steps", {
                "step": windows.numbers, "rank": np.full(len(starts), self._numbers[rank]), "start_ns": starts,
                "trace_start_ns": trace_starts, "wall_ns": budget.wall, "busy_ns": budget.busy,
                "waiting_ns": budget.waiting, "transfer_ns": budget.transfer, "idle_ns": budget.idle,
                "late_ns": verdict.late_ns[:, column],
                "host_ns": np.full(len(starts), -1) if host is None else host.working,
            })  # fmt: skip

    def write_collectives(self, run: Run, windows: Windows) -> None:
        """Write the collectives of all groups, and when each rank arrived."""
        first = 0
        for collectives in run.collectives:
            rows = run.main_rows.get(collectives.group.name) if windows.unit == "step" else None
            steps = None if rows is None else np.where(rows < 0, -1, windows.step_of[rows])
            self._write_group(run, collectives, steps, first)
            first += len(collectives.is_complete)

    def write_messages(self, run: Run, messages: Messages) -> None:
        """Write the matched messages."""
        if not messages.matches:
            return
        times = {
            index: (run.clocks[rank.trace].apply(rank.start), run.clocks[rank.trace].apply(rank.end))
            for index, rank in enumerate(run.ranks)
            if rank.trace in run.clocks
        }
        for communicator in dict.fromkeys(message.communicator for message in messages.matches):
            group = [message for message in messages.matches if message.communicator == communicator]
            self._fill("messages", {
                "sender": np.array([self._numbers[message.sender] for message in group]),
                "receiver": np.array([self._numbers[message.receiver] for message in group]),
                "bytes": np.array([message.bytes for message in group]),
                "sent_ns": np.array([times[message.sender][0][message.send_kernel] for message in group]),
                "sent_end_ns": np.array([times[message.sender][1][message.send_kernel] for message in group]),
                "received_ns": np.array([times[message.receiver][0][message.receive_kernel] for message in group]),
                "received_end_ns": np.array([times[message.receiver][1][message.receive_kernel] for message in group]),
                "is_alone": np.array([message.is_alone for message in group]),
            }, communicator=communicator)  # fmt: skip

    def _write_group(self, run: Run, collectives: Collectives, steps: Ints | None, first: int) -> None:
        """Write the collectives of a group. `first` is the number of its first collective."""
        group, has_kernel = collectives.group, collectives.group.kernels >= 0
        ranks = [run.ranks[index] for index in group.ranks]
        rows = np.arange(len(collectives.is_complete))
        columns = has_kernel.argmax(axis=1)  # a rank that has the collective
        arrivals = np.where(has_kernel, collectives.start, np.iinfo(np.int64).min)
        sizes = [
            np.where(has_kernel[:, column], rank.size[group.kernels[:, column]], -1)
            for column, rank in enumerate(ranks)
        ]
        numbers = np.array([self._numbers[index] for index in group.ranks])
        operations = [ranks[columns[row]].operation[group.kernels[row, columns[row]]] for row in rows]
        names = list(dict.fromkeys(operations))
        # Pass operations as numbers: for each text in an array, DuckDB checks again whether pandas is installed.
        number_of = {name: number for number, name in enumerate(names)}
        starts = np.where(has_kernel, collectives.start, np.iinfo(np.int64).max)
        ends = np.where(has_kernel, collectives.end, np.iinfo(np.int64).max)
        self._fill("collectives", {
            "collective": first + rows, "operation": np.array([number_of[name] for name in operations]),
            "bytes": np.max(sizes, axis=0),
            "ranks": np.full(len(rows), len(ranks)), "seen_ranks": has_kernel.sum(axis=1),
            "step": np.full(len(rows), -1) if steps is None else steps,
            "start_ns": starts.min(axis=1), "arrived_ns": arrivals.max(axis=1), "end_ns": ends.min(axis=1),
            "waiting_ns": collectives.waiting.sum(axis=1), "last_rank": numbers[arrivals.argmax(axis=1)],
            "is_complete": collectives.is_complete,
        }, error=round(run.error), communicator=group.name, operations="|".join(names))  # fmt: skip
        for column, number in enumerate(numbers):
            kernel_rows = np.flatnonzero(has_kernel[:, column])
            self._fill("collective_ranks", {
                "collective": first + kernel_rows, "rank": np.full(len(kernel_rows), number),
                "start_ns": collectives.start[kernel_rows, column], "end_ns": collectives.end[kernel_rows, column],
                "waiting_ns": collectives.waiting[kernel_rows, column],
                "is_complete": collectives.is_complete[kernel_rows], "bytes": sizes[column][kernel_rows],
            })  # fmt: skip

    def _fill(self, name: str, columns: dict[str, Any], **values: Any) -> None:
        """Add rows, given as an array for each column, by the statement `name` of this folder."""
        self._connection.register("new_rows", columns)
        self._connection.execute(bind(read_query(f"facts/ranks/{name}"), values))
        self._connection.unregister("new_rows")
