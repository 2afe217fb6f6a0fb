"""Reports summed over the ranks of a run: how the header combines each column, and the query that does so."""

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
class RankSums:
    """How the rows of all ranks with the same values in `group_by` become one row.

    Columns that it does not name are left out.

    Attributes:
        group_by: The columns that identify a row; `by` in the header.
        spread: The column whose minimum and maximum over the ranks are added, and by which rows are ordered.
        sum: Columns that are summed.
        mean: Columns that are averaged over all ranks; a rank without such a row counts as 0.
        min: Columns whose minimum is taken.
        max: Columns whose maximum is taken.
        ratio: Columns that are the ratio of two sums.
    """

    group_by: tuple[str, ...]
    spread: str
    sum: tuple[str, ...] = ()
    mean: tuple[str, ...] = ()
    min: tuple[str, ...] = ()
    max: tuple[str, ...] = ()
    ratio: Mapping[str, tuple[str, str]] | None = None

    @property
    def added_columns(self) -> dict[str, str]:
        """Return the columns that the sum adds, with their descriptions."""
        unit = self.spread.rpartition("_")[2]
        return {
            "ranks": "Number of ranks with such a row",
            f"rank_min_{unit}": f"The smallest {self.spread} of a rank; 0 if one has no such row",
            f"rank_max_{unit}": f"The largest {self.spread} of a rank",
            "max_rank": "The rank that has it",
        }

    def describe_columns(self, report_columns: Mapping[str, str]) -> dict[str, str]:
        """Return the descriptions of the answer's columns, in the report's order, from the report's header."""
        summed_columns = {*self.group_by, *self.sum, *self.mean, *self.min, *self.max, *(self.ratio or ())}
        descriptions = {
            name: f"{text}; a mean over the ranks" for name, text in report_columns.items() if name in self.mean
        }
        return {
            name: descriptions.get(name, text) for name, text in report_columns.items() if name in summed_columns
        } | self.added_columns

    def write_query(self, answer: str, types: Mapping[str, str], ranks: int) -> str:
        """Write the query that sums the table `answer`, with columns of these types, over `ranks` ranks.

        A value that is unknown for one rank is unknown for the sum.
        """
        group_columns = ", ".join(map(identifier, self.group_by))
        complete_sums = {name: f"CASE WHEN count({name}) = count(*) THEN sum({name}) END" for name in types}
        summed_names = {
            *self.sum,
            *self.mean,
            self.spread,
            *(name for pair in (self.ratio or {}).values() for name in pair),
        }
        per_rank = [f"{complete_sums[name]} AS {name}" for name in sorted(summed_names)]
        per_rank += [f"{function}({name}) AS {name}" for function in ("min", "max") for name in getattr(self, function)]
        expressions = {name: f"{complete_sums[name]}::{types[name]}" for name in self.sum}
        expressions |= {name: f"{complete_sums[name]}::DOUBLE / {ranks}" for name in self.mean}
        expressions |= {name: f"min({name})" for name in self.min} | {name: f"max({name})" for name in self.max}
        expressions |= {
            name: f"({complete_sums[numerator]}) / nullif({complete_sums[denominator]}, 0)"
            for name, (numerator, denominator) in (self.ratio or {}).items()
        }
        expressions |= {name: name for name in self.group_by}
        select_list = [f"{expressions[name]} AS {name}" for name in types if name in expressions]
        _, min_column, max_column, rank_column = self.added_columns
        spread, kind = self.spread, types[self.spread]
        smallest = f"CASE WHEN count(*) < {ranks} THEN least(0, min({spread})) ELSE min({spread}) END"
        return f"""
            WITH rank_rows AS (
                SELECT {group_columns}, trace, rank, {", ".join(per_rank)}
                FROM {answer} GROUP BY {group_columns}, trace, rank
            )
            SELECT
                {", ".join(select_list)},
                count(*) AS ranks,
                CASE WHEN count({spread}) = count(*) THEN {smallest} END::{kind} AS {min_column},
                max({spread})::{kind} AS {max_column},
                arg_max(rank, (coalesce({spread}, -1), -rank)) AS {rank_column}
            FROM rank_rows
            GROUP BY {group_columns}
            ORDER BY sum({spread}) DESC NULLS LAST, {group_columns}
        """


def read_header(facts: Mapping[str, Any]) -> RankSums:
    """Read the table `ranks` of a report's header."""
    lists = {name: tuple(facts.get(name, ())) for name in ("sum", "mean", "min", "max")}
    ratio = {name: (numerator, denominator) for name, (numerator, denominator) in facts.get("ratio", {}).items()}
    return RankSums(group_by=tuple(facts.get("by", ())), spread=facts["spread"], ratio=ratio, **lists)
