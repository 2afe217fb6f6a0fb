"""Which facts there are: those that one statement finds, and kinds of several that are found together.

A fact is a table of the schema `facts`, which the views of the model show. `queries/facts` has what fills them: a file
for each that one statement finds, and a folder for each kind that takes more, whose `tables.sql` says what they hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from nsys_insight.model import views
from nsys_insight.model.fact_tables import fact_tables, without_comments
from nsys_insight.packs.step_options import AUTO, StepOptions
from nsys_insight.paths import query

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    import duckdb


@dataclass(frozen=True)
class FactOptions:
    """What the user says about facts: how steps are found, and how long a gap is at least that is listed."""

    steps: StepOptions = AUTO
    min_gap_ns: int | None = None


NOTHING_SAID = FactOptions()
# The facts that more than one statement finds, by the folder of `queries/facts` that has these.
KINDS = {
    "captured": frozenset({"captured"}),
    "idle": frozenset({"idle_time", "idle_calls"}),
    "work": frozenset({"cpu_pieces", "gap_samples"}),
    "cpu_work": frozenset({"cpu_work"}),
    "python_frames": frozenset({"python_lines", "python_frames", "python_chains"}),
    "cpu_frames": frozenset({"cpu_frames", "cpu_chains"}),
    "callers": frozenset({"callers", "called_from", "call_places"}),
    "few_callers": frozenset({"few_callers", "few_stacks", "few_calls"}),
    "gap_callers": frozenset({"gap_callers", "gap_stacks", "gap_calls"}),
    "gaps": frozenset({"listed_gaps", "listed_operations", "listed_activity", "listed_copies"}),
    "steps": frozenset({"steps", "step_calls", "step_launches", "step_method"}),
    "step_kernels": frozenset({"step_kernels"}),
    "critical_path": frozenset({"critical_path", "critical_path_run"}),
    "phases": frozenset({"phase_steps", "requests"}),
    "fusion": frozenset({"fusions", "fusion_kernels", "fusion_step"}),
    "nccl": frozenset({"nccl_kernels", "nccl_messages", "nccl_ranks"}),
    "rank_numbers": frozenset({"rank_numbers"}),
    "ranks": frozenset(
        {"ranks", "collectives", "collective_ranks", "messages", "rank_steps", "rank_delays", "rank_run"}
    ),
}
# The kinds that are of all traces together: they are in the connection's own catalog.
OF_RUN = frozenset({"ranks", "rank_numbers"})
# How progress names what is being found, where it is not the name of the fact.
_WORDS = {
    "idle": "idle time",
    "fusion": "fusion candidates",
    "gpu_reach": "GPU activity",
    "overlapping_threads": "API calls",
    "inner_calls": "API calls",
    "captured": "settings",
    "api_frames": "call chains",
    "python_frames": "call chains of Python",
    "few_callers": "callers",
    "gap_callers": "callers",
    "cpu_frames": "call chains of samples",
    "work": "CPU time",
    "cpu_work": "CPU work",
    "critical_path": "the critical path",
    "nccl": "collectives",
    "rank_numbers": "ranks",
    "ranks": "who is late",
}
# Kinds whose statements use the scratch tables of another kind: only one thread at a time finds any of both.
_SCRATCH_OF = {"phases": "steps", "step_kernels": "steps", "gap_callers": "few_callers"}
# Two threads may be the first to need a table.
_CREATING = Lock()
_KIND_OF = {table: kind for kind, tables in KINDS.items() for table in tables}


def create_schemas(connection: duckdb.DuckDBPyConnection, *names: str) -> None:
    """Create schemas, but for those in whose place a database of the name is attached (`FactsFile`)."""
    attached = {name for (name,) in connection.execute("SELECT database_name FROM duckdb_databases()").fetchall()}
    for name in names:
        if name not in attached:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {name}")


def create_tables(connection: duckdb.DuckDBPyConnection, names: AbstractSet[str]) -> None:
    """Create tables of facts that are not there yet, without rows, for the views that show them."""
    with _CREATING:
        for kind, tables in KINDS.items():
            if names & tables:
                connection.execute(without_comments(query(f"facts/{kind}/tables")))
        for name in names & fact_tables().keys():
            connection.execute(fact_tables()[name].create)


def every_table() -> AbstractSet[str]:
    """The names of all facts."""
    return fact_tables().keys() | frozenset().union(*KINDS.values())


def tables_of_trace() -> AbstractSet[str]:
    """The names of the facts that are of a trace by itself, whatever others are open."""
    return every_table() - tables_of_run()


def tables_of_run() -> AbstractSet[str]:
    """The names of the facts that are of all traces together."""
    return frozenset().union(*(KINDS[kind] for kind in OF_RUN))


def tables_of(kind: str) -> AbstractSet[str]:
    """The names of the facts of a kind, which is that of a single fact or of several that are found together."""
    return KINDS.get(kind, frozenset({kind}))


def kind_of(table: str) -> str:
    """The kind of a fact."""
    return _KIND_OF.get(table, table)


def scratch_of(kind: str) -> str:
    """The kind whose scratch tables the statements of a kind use: itself, but for some."""
    return _SCRATCH_OF.get(kind, kind)


def word(kind: str) -> str:
    """How progress names what is being found."""
    return _WORDS.get(kind, kind.replace("_", " "))


def said(kind: str, options: FactOptions) -> object:
    """What the user said that facts of a kind depend on."""
    if kind in ("gaps", "gap_callers", "explained_gaps"):
        return options.min_gap_ns
    if kind in ("steps", "step_kernels", "fusion", "cpu_work", "critical_path", "ranks"):
        return options.steps
    about_steps = kind in fact_tables() and views.facts_read(fact_tables()[kind].query) & KINDS["steps"]
    return options.steps if about_steps else None
