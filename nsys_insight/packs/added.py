"""How the ranks of a run are added up in a report: what its header says of the columns, and the query that does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.packs.pack import Param
from nsys_insight.sql.quoting import identifier

if TYPE_CHECKING:
    from collections.abc import Mapping

PARAM = Param(
    "ranks", str, None,
    "For several ranks: all summed, with the minimum and maximum of a rank, or a row for each; by default "
    "summed if the traces are known to be one run and the report can be summed. For one trace, its processes that run "
    "NCCL",
    ("sum", "each"),
)  # fmt: skip


@dataclass(frozen=True)
class AddedUp:
    """What becomes of a report's columns where its rows of all ranks that have the same `by` become one row.

    Columns that it does not name are left out.

    Attributes:
        by: The columns that tell what a row is about.
        spread: The column whose least and most of one rank is told, and by which rows are ordered.
        sum: Columns that are added up.
        mean: Columns whose mean over all ranks is taken, with 0 for a rank that has no such row.
        min: Columns of which the least is taken.
        max: Columns of which the most is taken.
        ratio: Columns that are one sum by another.
    """

    by: tuple[str, ...]
    spread: str
    sum: tuple[str, ...] = ()
    mean: tuple[str, ...] = ()
    min: tuple[str, ...] = ()
    max: tuple[str, ...] = ()
    ratio: Mapping[str, tuple[str, str]] | None = None

    @property
    def more(self) -> dict[str, str]:
        """The columns that are added, with what they mean."""
        unit = self.spread.rpartition("_")[2]
        return {
            "ranks": "Number of ranks with such a row",
            f"rank_min_{unit}": f"The smallest {self.spread} of a rank; 0 if one has no such row",
            f"rank_max_{unit}": f"The largest {self.spread} of a rank",
            "max_rank": "The rank that has it",
        }

    def columns(self, of_report: Mapping[str, str]) -> dict[str, str]:
        """The columns of the answer, in the report's order, with what they mean by the report's header."""
        kept = {*self.by, *self.sum, *self.mean, *self.min, *self.max, *(self.ratio or ())}
        means = {name: f"{text}; a mean over the ranks" for name, text in of_report.items() if name in self.mean}
        return {name: means.get(name, text) for name, text in of_report.items() if name in kept} | self.more

    def query(self, answer: str, types: Mapping[str, str], ranks: int) -> str:
        """Write the query over the answer of each of so many ranks, whose columns have these types.

        What is not known of one rank is not known of all.
        """
        by = ", ".join(map(identifier, self.by))
        whole = {name: f"CASE WHEN count({name}) = count(*) THEN sum({name}) END" for name in types}
        added = {*self.sum, *self.mean, self.spread, *(name for pair in (self.ratio or {}).values() for name in pair)}
        of_rank = [f"{whole[name]} AS {name}" for name in sorted(added)]
        of_rank += [f"{how}({name}) AS {name}" for how in ("min", "max") for name in getattr(self, how)]
        made = {name: f"{whole[name]}::{types[name]}" for name in self.sum}
        made |= {name: f"{whole[name]}::DOUBLE / {ranks}" for name in self.mean}
        made |= {name: f"min({name})" for name in self.min} | {name: f"max({name})" for name in self.max}
        made |= {name: f"({whole[of]}) / nullif({whole[to]}, 0)" for name, (of, to) in (self.ratio or {}).items()}
        made |= {name: name for name in self.by}
        named = [f"{made[name]} AS {name}" for name in types if name in made]
        _, least, most, which = self.more
        spread, kind = self.spread, types[self.spread]
        least_of = f"CASE WHEN count(*) < {ranks} THEN least(0, min({spread})) ELSE min({spread}) END"
        return f"""
            WITH of_rank AS (SELECT {by}, trace, rank, {", ".join(of_rank)} FROM {answer} GROUP BY {by}, trace, rank)
            SELECT
                {", ".join(named)},
                count(*) AS ranks,
                CASE WHEN count({spread}) = count(*) THEN {least_of} END::{kind} AS {least},
                max({spread})::{kind} AS {most},
                arg_max(rank, (coalesce({spread}, -1), -rank)) AS {which}
            FROM of_rank
            GROUP BY {by}
            ORDER BY sum({spread}) DESC NULLS LAST, {by}
        """


def of_header(facts: Mapping[str, Any]) -> AddedUp:
    """Read the table `ranks` of a report's header."""
    lists = {name: tuple(facts.get(name, ())) for name in ("by", "sum", "mean", "min", "max")}
    ratio = {name: (of, to) for name, (of, to) in facts.get("ratio", {}).items()}
    return AddedUp(spread=facts["spread"], ratio=ratio, **lists)
