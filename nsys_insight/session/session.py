"""A trace, or several, opened to be asked: packs and SQL, with what must be known beside the numbers."""

from __future__ import annotations

from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from nsys_insight import progress
from nsys_insight.errors import InsightError, UsageError
from nsys_insight.facts.context import FactOptions
from nsys_insight.ingest import cache_folder, extents
from nsys_insight.ingest.files import File, Kind, labels_of
from nsys_insight.ingest.identify import identify, settled
from nsys_insight.ingest.limits import suited
from nsys_insight.ingest.ncu.store import for_trace
from nsys_insight.ingest.raw import WHOLE
from nsys_insight.ingest.scope import WHOLE_TRACE, Scope
from nsys_insight.packs import added, library
from nsys_insight.packs.step_options import AUTO, StepOptions
from nsys_insight.session.answer import Answer, Column
from nsys_insight.session.connection import Connection
from nsys_insight.session.prefetch import Question
from nsys_insight.session.ranks import RANKS_QUERY, RankNumbers, rank_numbers, rank_parts, sum_over_ranks
from nsys_insight.session.report_question import ReportQuestion, is_of_run, report_question
from nsys_insight.session.running_answer import RunningAnswer
from nsys_insight.sql.names import mentioned
from nsys_insight.sql.rows import named
from nsys_insight.sql.statements import Statement, one_query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from nsys_insight.packs.pack import Pack

_BESIDE = {"trace": "The trace of the row", "rank": "The rank of the trace, where known"}
_ADDED = "{} ranks are summed; --ranks each has the rows of each rank"


class Session:
    """A trace, opened read-only, in a scope.

    Args:
        path: A `.nsys-rep` or `.qdrep` (exported with your nsys), its SQLite export, a parquetdir, or what
            ``nsys-insight convert`` made of one. Several are the ranks of a run, or to be
            looked at beside each other: every view and most reports then have a column `trace`.
        scope: The part of the trace to look at.
        memory: What a query may hold in memory before it spills to disk, such as ``"2GB"``. None takes what suits the
            machine, and more where that does not do.
        threads: How many threads a query may use; None is for one a core, up to 8.
        timeout_s: How many seconds a query may take.
        use_cache: True builds a DuckDB copy in the cache folder first, which makes further questions on a big trace
            faster; None uses one if it is there; False neither looks into that folder nor leaves anything there: the
            export of a report is then a temporary one.
        ncu: What Nsight Compute measured of the same program: a file that ``nsys-insight ncu import`` wrote, or a CSV
            page or report of ncu itself. None looks for ``NAME.ncu.duckdb`` beside the trace.
        steps: How steps are found that the scope chooses.
        note: Called with every sentence that the user should know, of the trace and of every report's answer:
            ``nsys_insight.open(path, note=print)``.
        progress: Called with the percentage while nsys exports a report.
        parts: Parts of a single trace, each with what it is called, to be looked at as if they were several traces.

    Raises:
        TraceError: The file cannot be read.
        ToolError: The report needs nsys, which is missing or failed.
    """

    def __init__(  # noqa: PLR0913 - options by keyword
        self,
        path: str | Path | Sequence[str | Path],
        *,
        scope: Scope = WHOLE_TRACE,
        memory: str | None = None,
        threads: int | None = None,
        timeout_s: float | None = None,
        use_cache: bool | None = None,
        ncu: str | Path | None = None,
        steps: StepOptions = AUTO,
        note: Callable[[str], None] = lambda _: None,
        progress: Callable[[int], None] | None = None,
        parts: Sequence[tuple[str, Scope]] = (),
    ) -> None:
        """Open the trace and create the model over it."""
        self.paths = [Path(path)] if isinstance(path, str | Path) else [Path(each) for each in path]
        self.path = self.paths[0]
        self._scope = scope
        self._parts = parts
        self._options: dict[str, Any] = {
            "memory": memory, "threads": threads, "timeout_s": timeout_s, "use_cache": use_cache, "ncu": ncu,
            "steps": steps, "note": note, "progress": progress,
        }  # fmt: skip
        several = len(self.paths) > 1 or bool(parts)
        if ncu and several:
            raise UsageError("ncu data belongs to one trace", "open one of the traces with it")
        lasting = use_cache is not False and not cache_folder.refusal()
        files = [
            _file(each, label, note, progress, lasting=lasting)
            for each, label in zip(self.paths, labels_of(self.paths), strict=True)
        ]
        self._ncu_said = False
        self.ncu = None if several else for_trace(self.path, Path(ncu) if ncu else None, lasting=lasting)
        limits = suited([file.path for file in files], memory, threads)
        self._connection = Connection(
            files, scope, limits, use_cache=use_cache, timeout_s=timeout_s, ncu=self.ncu, steps=steps, note=note,
            parts=parts,
        )  # fmt: skip
        self._by_rank: Self | None = None

    def scope(  # noqa: PLR0913 - the parts of a scope, by keyword
        self,
        *,
        nvtx: str | None = None,
        phase: str | None = None,
        steady: bool | None = None,
        step: int | None = None,
        from_ns: int | None = None,
        to_ns: int | None = None,
        device: int | None = None,
        process: int | None = None,
        stream: int | None = None,
        steps: StepOptions | None = None,
    ) -> Self:
        """Return this trace narrowed: ``trace.scope(nvtx="decode_step", device=0)``; see `ingest.scope.Scope`.

        What is not given stays as it is; `steps` says how the steps are found that are chosen.
        """
        given: dict[str, Any] = {
            "nvtx": nvtx,
            "phase": phase,
            "steady": steady,
            "step": step,
            "from_ns": from_ns,
            "to_ns": to_ns,
            "device": device,
            "process": process,
            "stream": stream,
        }
        parts: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if not parts.keys().isdisjoint(("steady", "step")):  # one choice of steps takes the place of another
            parts = {"steady": None, "step": None} | parts
        options = self._options | ({} if steps is None else {"steps": steps})
        return type(self)(self.paths, scope=self._scope.narrowed(**parts), **options)

    def only(self, path: Path, **scope: int) -> Self:
        """Return one of the traces that are open, alone, narrowed by these parts of a scope."""
        return type(self)(path, scope=self._scope.narrowed(**scope), **self._options)

    @property
    def labels(self) -> list[str]:
        """What the traces are called, or the parts of one."""
        return self._connection.labels

    def answer(self, report: str | Pack, *, steps: StepOptions | None = None, **params: Any) -> Answer:
        """Answer a report, with its notes and what its columns mean.

        Of several traces a report about ranks is answered once; another one for each, with a column `trace` in front.
        Reports about steps take `steps`, or its options by name (`packs.step_options`). With ``ranks="each"`` the
        processes of one trace that run NCCL are answered as several traces are; with ``ranks="sum"`` all ranks are
        added up, as they are anyway where the traces are known to be those of a run (`packs.added`).

        Raises:
            UsageError: There is no such report, or a parameter is wrong.
        """
        pack = library.pack_of(report) if isinstance(report, str) else report
        if steps is not None and "steps" in pack.params:  # a parameter of a user's report may have this name
            params["steps"], steps = steps, None
        ranks = params.pop(added.PARAM.name, None)
        if ranks is not None and not is_of_run(pack):
            ranks = added.PARAM.value(ranks)
            if ranks == "sum" and not pack.ranks:
                raise UsageError(f"{pack.name} cannot be summed over ranks", "a row for each: --ranks each")
            if len(self.labels) == 1:
                return self.by_rank().answer(pack, steps=steps, ranks=ranks, **params)
        asked = self._asked(pack, params, steps)
        self._say_which_ncu(asked.question.query)
        ours = pack.is_ours
        with progress.at(f"answering {pack.name}"):
            means = dict(pack.columns)
            if len(self.labels) == 1 or is_of_run(pack):
                (table, columns), said = self._connection.report(asked.question, ours=ours)
            else:
                numbers, is_run = self._rank_numbers()
                (table, columns), said = self._connection.report_of_each(asked.question, ours=ours, ranks=numbers)
                means |= _BESIDE
                if pack.ranks and (ranks == "sum" or (ranks is None and is_run)):
                    query, means = sum_over_ranks(pack, table, columns, numbers, self.labels)
                    table, columns = self._connection.table(query, ours=True)
                    asked.notes.append("ranks")
                    said = [*said, [_ADDED.format(len(self.labels))]]
        notes = [(name, text) for name, texts in zip(asked.notes, said, strict=True) for text in texts]
        return Answer(
            connection=self._connection.duckdb,
            table=table,
            columns=tuple(_column(pack, name, kind, means) for name, kind in columns),
            report=pack.name,
            title=pack.title,
            params=asked.values,
            notes=tuple(text for _, text in notes),
            note_names=tuple(name for name, _ in notes),
            empty=self._empty(pack, table),
            trace=self.about(),
        )

    def ahead(
        self,
        reports: Iterable[tuple[Pack, Mapping[str, Any]]],
        rows: Iterable[str] = (),
        steps: StepOptions | None = None,
    ) -> None:
        """Work out answers that will be asked for, several at a time; what fails is worked out again when asked for.

        Args:
            reports: Reports of ours, with their parameters.
            rows: Queries that `rows` or `dicts` will be given.
            steps: How steps are found for all of them.
        """
        if self._options["threads"] == 1:
            return
        asked = (Question(query, (), FactOptions(steps or AUTO), for_rows=True) for query in rows)
        self._connection.ahead(chain(self._questions(reports, steps), asked))

    def _questions(
        self, reports: Iterable[tuple[Pack, Mapping[str, Any]]], steps: StepOptions | None
    ) -> Iterator[Question]:
        for pack, params in reports:
            with suppress(InsightError):
                yield self._asked(pack, params, steps).question

    def _asked(self, pack: Pack, params: Mapping[str, Any], steps: StepOptions | None) -> ReportQuestion:
        return report_question(pack, params, steps, self._scope, self._options["steps"])

    def by_rank(self) -> Self:
        """Return this trace as the ranks in it: its processes that run kernels of NCCL, each GPU of one by itself.

        Raises:
            UsageError: There are not two.
        """
        if self._by_rank is None:
            found = self.rows(RANKS_QUERY)
            if len(found) < 2:
                raise UsageError(
                    f"{self.path.name} has no ranks: no two processes or GPUs in it run NCCL kernels",
                    "name several traces, or omit --ranks",
                )
            parts = rank_parts(found, self._scope)
            self._by_rank = type(self)(self.paths, scope=self._scope, parts=parts, **self._options)
        return self._by_rank

    def _rank_numbers(self) -> RankNumbers:
        return rank_numbers(self.rows(RANKS_QUERY), self.labels, is_known=bool(self._parts))

    def query(self, query: str) -> Answer:
        """Answer an SQL query over the model's views."""
        return self.execute(Statement(one_query(query)))

    def execute(self, statement: Statement) -> Answer:
        """Answer one query of a text that `sql.statements.split` took apart."""
        self._say_which_ncu(statement.sql)
        with progress.at("running the query"):
            table, columns = self._connection.table(statement.sql, line=statement.line)
        return self._answer(table, columns, trace=self.about())

    def define(self, statement: Statement) -> None:
        """Run the definition of a table, view or macro, for the queries after it.

        Raises:
            QueryError: It failed, or would hide what the views are made of.
        """
        self._say_which_ncu(statement.sql)
        with progress.at(f"making {statement.creates}"):
            self._connection.define(statement)

    def stream(self, statement: Statement) -> RunningAnswer:
        """Answer a query while it runs, however much it returns."""
        self._say_which_ncu(statement.sql)
        return RunningAnswer(self._connection, statement)

    def rows(self, query: str, steps: StepOptions = AUTO) -> list[Any]:
        """Answer an SQL query as rows with their cells as attributes; steps are found as the options say."""
        return named(*self._connection.rows(query, FactOptions(steps)))

    def dicts(self, query: str, steps: StepOptions = AUTO) -> list[dict[str, Any]]:
        """Answer an SQL query as rows of cells by column."""
        names, rows = self._connection.rows(query, FactOptions(steps))
        return [dict(zip(names, row, strict=True)) for row in rows]

    def load(self) -> None:
        """Copy a big export into DuckDB first, which pays from a dozen questions on (`OpenStrategies.copy`)."""
        self._connection.load()

    def about(self) -> dict[str, Any]:
        """What an answer says of the trace: the file's name, or those of several, the scope, and what is left out."""
        about: dict[str, Any] = {"file": self.path.name}
        if len(self.paths) > 1:
            about = {"files": [path.name for path in self.paths]}
        about["scope"] = self._scope.given
        if self._connection.left_out:
            about["left_out"] = self._connection.left_out
        return about

    def refuse_several(self, message: str, hint: str) -> None:
        """Refuse what is of one trace.

        Raises:
            UsageError: Several are open.
        """
        if len(self.paths) > 1:
            raise UsageError(message, hint)

    def _answer(self, table: str, columns: list[tuple[str, str]], **facts: Any) -> Answer:
        found = tuple(Column(name, kind) for name, kind in columns)
        return Answer(self._connection.duckdb, table, found, report="sql", title="", **facts)

    def _say_which_ncu(self, statement: str) -> None:
        """Say once where ncu's data come from, when a query uses some that the user did not name."""
        if self.ncu is None or self._options["ncu"] is not None or self._ncu_said:
            return
        if "ncu_" in statement and any(name.lstrip("_").startswith("ncu_") for name in mentioned(statement).of_model):
            self._ncu_said = True
            self._options["note"](f"ncu data is from {self.ncu}")

    def _empty(self, pack: Pack, table: str) -> str:
        if self._scope == WHOLE_TRACE:
            return pack.empty
        any_row = self._connection.duckdb.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()
        lies = "" if any_row else self.where_events_lie()
        return f"Nothing in this scope ({self._scope.words}){lies}. For a whole trace, that would mean: {pack.empty}"

    def where_events_lie(self) -> str:
        """Say when the GPU worked in the whole trace, after a semicolon; nothing where no window is asked for."""
        if self._scope.from_ns is None and self._scope.to_ns is None:
            return ""
        tables = [table for table in extents.EVENTS if table in WHOLE and table != "CUPTI_ACTIVITY_KIND_RUNTIME"]
        found = self._connection.duckdb.execute(extents.select({}, schema="whole", tables=tables)).fetchone()
        if not found or found[0] is None:
            return "; the whole trace has no GPU work"
        return f"; the GPU works from {found[0] / 1e9:.6g} s to {found[1] / 1e9:.6g} s of this trace"

    def close(self) -> None:
        """Close the trace; its answers cannot be read afterwards."""
        if self._by_rank is not None:
            self._by_rank.close()
        self._connection.close()

    def __enter__(self) -> Self:
        """Use the trace as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it at the end of the block."""
        self.close()

    def __repr__(self) -> str:
        """Show what is opened."""
        scope = ", ".join(f"{name}={value!r}" for name, value in self._scope.given.items())
        files = ", ".join(repr(str(path)) for path in self.paths)
        return f"<{type(self).__name__} {files}{' ' + scope if scope else ''}>"


def _file(
    path: Path, label: str, note: Callable[[str], None], progress: Callable[[int], None] | None, *, lasting: bool
) -> File:
    """Tell what a trace is, and make of it what can be queried."""
    kind = identify(path)
    if kind is Kind.REPORT:
        from nsys_insight.ingest.export import exported

        return File(exported(path, note=note, progress=progress, lasting=lasting), Kind.SQLITE, label)
    return File(settled(path, note, lasting=lasting) if kind is Kind.SQLITE else path, kind, label)


def _column(pack: Pack, name: str, kind: str, means: Mapping[str, str]) -> Column:
    return Column(name, kind, means.get(name, ""), name in pack.details, pack.place_of(name), pack.shares.get(name, ""))
