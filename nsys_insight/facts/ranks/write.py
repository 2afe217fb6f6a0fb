"""Writing down what is found about the ranks of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.facts.ranks.matching import apart
from nsys_insight.paths import query
from nsys_insight.sql.parameters import bind
from nsys_insight.sql.rows import insert

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from nsys_insight.facts.rank_numbers import Numbered
    from nsys_insight.facts.ranks.budget import Spent
    from nsys_insight.facts.ranks.judge import Delay, Verdict
    from nsys_insight.facts.ranks.messages import Messages
    from nsys_insight.facts.ranks.rank import Ints, Place, Rank
    from nsys_insight.facts.ranks.run import Collectives, Run


@dataclass(frozen=True)
class Windows:
    """Steps of a run: `step` are their numbers, from the end of the last collective before to that of their own last.

    `first` and `last` are rows of the collectives of the main group. `step_of` has the step of each row, -1 for none.
    `counted_by` is the rank in whose capture the steps are counted.
    """

    unit: str
    step: Ints
    first: Ints
    last: Ints
    step_of: Ints
    counted_by: int | None = None


class Writer:
    """Fills the tables of facts about ranks, which are called by their numbers."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, told: Numbered) -> None:
        """Write to the connection's own catalog."""
        self._connection, self._numbers = connection, told.numbers

    def ranks(
        self, ranks: Sequence[Rank], labels: Sequence[str], found: Run | None, began: Sequence[int | None],
        places: Sequence[Place],
    ) -> None:  # fmt: skip
        """Write which ranks there are, and how their clocks differ from that of the first trace."""
        first = found.ranks[found.main.group.ranks[0]].trace if found else 0
        rows = []
        for number, one, place in zip(self._numbers, ranks, places, strict=True):
            clock = found.clocks.get(one.trace) if found else None
            later = apart(began[first], began[one.trace])
            rows.append({
                "rank": number, "trace": labels[one.trace], "process_id": one.process_id, "device_id": one.device_id,
                "gpu_id": one.gpu_id, "nccl_kernels": len(one.start), "nccl_ns": int((one.end - one.start).sum()),
                "clock_offset_ns": clock.offset + later if clock is not None and later is not None else None,
                "clock_drift_ppm": clock.drift * 1e6 if clock else None, "host_number": place.host, "gpu": place.gpu,
            })  # fmt: skip
        insert(self._connection, "facts.ranks", rows)

    def run(self, **said: Any) -> None:
        """Write what is to be said of the run as a whole."""
        insert(self._connection, "facts.rank_run", [said])

    def delay(self, number: int, why: Delay, host: str | None, place: str | None) -> None:
        """Write why a rank is late."""
        row = {
            "rank": self._numbers[number], "cause": why.cause, "more_busy_ns": why.more_busy,
            "more_idle_ns": why.more_idle, "busy_ratio": why.busy_ratio, "host": host, "place": place,
        }  # fmt: skip
        insert(self._connection, "facts.rank_delays", [row])

    def steps(self, found: Run, windows: Windows, spent: Sequence[Spent], verdict: Verdict) -> None:
        """Write what the time of each rank goes to in each step."""
        import numpy as np

        for column, (number, one) in enumerate(zip(found.main.group.ranks, spent, strict=True)):
            starts = found.main.end[windows.first, column]
            own = found.ranks[number].end[found.main.group.at[windows.first, column]]
            self._fill("rank_steps", {
                "step": windows.step, "rank": np.full(len(starts), self._numbers[number]), "start_ns": starts,
                "trace_start_ns": own, "wall_ns": one.wall, "busy_ns": one.busy, "waiting_ns": one.waiting,
                "transfer_ns": one.transfer, "idle_ns": one.idle, "late_ns": verdict.late_ns[:, column],
            })  # fmt: skip

    def collectives(self, found: Run, windows: Windows) -> None:
        """Write the collectives of all groups, and when each rank came."""
        first = 0
        for of in found.collectives:
            in_steps = of is found.main and windows.unit == "step"
            self._collectives(found, of, windows.step_of if in_steps else None, first)
            first += len(of.whole)

    def messages(self, found: Run, sent: Messages) -> None:
        """Write the messages that are matched."""
        import numpy as np

        if not sent.matched:
            return
        times = {
            at: (found.clocks[one.trace].apply(one.start), found.clocks[one.trace].apply(one.end))
            for at, one in enumerate(found.ranks)
            if one.trace in found.clocks
        }
        for communicator in dict.fromkeys(one.communicator for one in sent.matched):
            of = [one for one in sent.matched if one.communicator == communicator]
            self._fill("messages", {
                "sender": np.array([self._numbers[one.sender] for one in of]),
                "receiver": np.array([self._numbers[one.receiver] for one in of]),
                "bytes": np.array([one.bytes for one in of]),
                "sent_ns": np.array([times[one.sender][0][one.sent] for one in of]),
                "sent_end_ns": np.array([times[one.sender][1][one.sent] for one in of]),
                "received_ns": np.array([times[one.receiver][0][one.received] for one in of]),
                "received_end_ns": np.array([times[one.receiver][1][one.received] for one in of]),
                "is_alone": np.array([one.is_alone for one in of]),
            }, communicator=communicator)  # fmt: skip

    def _collectives(self, found: Run, of: Collectives, steps: Ints | None, first: int) -> None:
        import numpy as np

        group, seen = of.group, of.group.at >= 0
        ranks = [found.ranks[at] for at in group.ranks]
        rows = np.arange(len(of.whole))
        column = seen.argmax(axis=1)  # of a rank that has it
        arrivals = np.where(seen, of.start, np.iinfo(np.int64).min)
        sizes = [np.where(seen[:, at], one.size[group.at[:, at]], -1) for at, one in enumerate(ranks)]
        who = np.array([self._numbers[at] for at in group.ranks])
        operations = [ranks[column[row]].operation[group.at[row, column[row]]] for row in rows]
        names = list(dict.fromkeys(operations))
        # Texts by number: of each text in an array DuckDB asks anew whether pandas is there.
        number_of = {name: number for number, name in enumerate(names)}
        self._fill("collectives", {
            "collective": first + rows, "operation": np.array([number_of[name] for name in operations]),
            "bytes": np.max(sizes, axis=0),
            "ranks": np.full(len(rows), len(ranks)), "seen_ranks": seen.sum(axis=1),
            "step": np.full(len(rows), -1) if steps is None else steps,
            "start_ns": np.where(seen, of.start, np.iinfo(np.int64).max).min(axis=1),
            "arrived_ns": arrivals.max(axis=1), "end_ns": np.where(seen, of.end, np.iinfo(np.int64).max).min(axis=1),
            "waiting_ns": of.waiting.sum(axis=1), "last_rank": who[arrivals.argmax(axis=1)], "whole": of.whole,
        }, error=round(found.error), communicator=group.name, operations="|".join(names))  # fmt: skip
        for at, number in enumerate(who):
            there = np.flatnonzero(seen[:, at])
            self._fill("collective_ranks", {
                "collective": first + there, "rank": np.full(len(there), number), "start_ns": of.start[there, at],
                "end_ns": of.end[there, at], "waiting_ns": of.waiting[there, at], "whole": of.whole[there],
            })  # fmt: skip

    def _fill(self, name: str, found: dict[str, Any], **values: Any) -> None:
        """Add rows to a table, of arrays by column, by the statement of `queries/facts/ranks` that is called so."""
        self._connection.register("found", found)
        self._connection.execute(bind(query(f"facts/ranks/{name}"), values))
        self._connection.unregister("found")
