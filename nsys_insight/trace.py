"""An opened trace: the reports as methods, and SQL over the model's views."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from nsys_insight import packs, steps
from nsys_insight.answer import Answer, Column
from nsys_insight.errors import UsageError
from nsys_insight.found import Wanted
from nsys_insight.many import labels_of
from nsys_insight.ncu.store import for_trace
from nsys_insight.scope import WHOLE_TRACE, Scope
from nsys_insight.session import Session
from nsys_insight.source import Kind, identify, settled
from nsys_insight.statements import Statement, one_query
from nsys_insight.stream import Stream
from nsys_insight.trace_files import File

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    import polars as pl

    from nsys_insight.diagnosis import Diagnosis


class Trace:
    """A trace, opened read-only.

    Every report is a method that returns a polars frame with raw values (ns, bytes, NULL for unknown):
    ``trace.top(group_by="family")``. `run` does the same by name, `answer` returns the result with its notes and the
    meaning of its columns, `sql` takes any question over the views (`nsys-insight schema` lists them), and `scope`
    returns the same trace narrowed to a part of it.

    Args:
        path: A `.nsys-rep` or `.qdrep` (exported with your nsys), its SQLite export, a parquetdir, or what
            ``nsys-insight convert`` made of one. Several are for SQL alone: every view then has a column `trace`.
        scope: The part of the trace to look at.
        memory: What a query may hold in memory before it spills to disk, such as ``"2GB"``.
        timeout_s: How many seconds a query may take.
        use_cache: True builds a DuckDB copy in the cache folder first, which makes further questions on a big trace
            faster; None uses one if it is there; False does not look.
        ncu: What Nsight Compute measured of the same program: a file that ``nsys-insight ncu import`` wrote, or a CSV
            page or report of ncu itself. None looks for ``NAME.ncu.duckdb`` beside the trace.
        note: Called with every sentence that the user should know, of the trace and of every report's answer:
            ``nsys_insight.open(path, note=print)``.
        progress: Called with the percentage while nsys exports a report.

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
        timeout_s: float | None = None,
        use_cache: bool | None = None,
        ncu: str | Path | None = None,
        note: Callable[[str], None] = lambda _: None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Open the trace and create the model over it."""
        self.paths = [Path(path)] if isinstance(path, str | Path) else [Path(each) for each in path]
        self.path = self.paths[0]
        self._scope = scope
        self._options: dict[str, Any] = {
            "memory": memory, "timeout_s": timeout_s, "use_cache": use_cache, "ncu": ncu,
            "note": note, "progress": progress,
        }  # fmt: skip
        several = len(self.paths) > 1
        if ncu and several:
            raise UsageError("what ncu measured is of one trace", "open one of the traces with it")
        files = [
            _file(each, label, note, progress) for each, label in zip(self.paths, labels_of(self.paths), strict=True)
        ]
        self._ncu_said = False
        self.ncu = None if several else for_trace(self.path, Path(ncu) if ncu else None)
        self._session = Session(files, scope, memory, use_cache=use_cache, timeout_s=timeout_s, ncu=self.ncu)

    def scope(  # noqa: PLR0913 - the parts of a scope, by keyword
        self,
        *,
        nvtx: str | None = None,
        from_ns: int | None = None,
        to_ns: int | None = None,
        device: int | None = None,
        process: int | None = None,
        stream: int | None = None,
    ) -> Trace:
        """Return this trace narrowed: ``trace.scope(nvtx="decode_step", device=0)``; see `nsys_insight.scope.Scope`.

        What is not given stays as it is.
        """
        asked = {
            "nvtx": nvtx,
            "from_ns": from_ns,
            "to_ns": to_ns,
            "device": device,
            "process": process,
            "stream": stream,
        }
        parts = {name: value for name, value in asked.items() if value is not None}
        return Trace(self.paths, scope=self._scope.narrowed(**parts), **self._options)

    def run(self, report: str, **params: Any) -> pl.DataFrame:
        """Answer a report as a polars frame: ``trace.run("gaps", min_gap_ns=5000)``.

        What must be known beside the numbers goes to the `note` that the trace was opened with.
        """
        answer = self.answer(report, **params)
        for text in answer.notes:
            self._options["note"](text)
        return answer.frame()

    def answer(self, report: str | packs.Pack, **params: Any) -> Answer:
        """Answer a report, with its notes and what its columns mean.

        Reports about steps also take the options of `nsys_insight.steps.StepOptions`.

        Raises:
            UsageError: There is no such report, a parameter is wrong, or several traces are open.
        """
        pack = packs.find(report) if isinstance(report, str) else report
        if len(self.paths) > 1:
            raise UsageError("a report is about one trace", "open one of them, or ask in SQL: GROUP BY trace")
        asked = {name: params.pop(name) for name in steps.params_of(pack.sql) if name in params}
        statement, values = pack.statement(params)
        self._say_which_ncu(statement)
        table, columns = self._session.table(statement, Wanted(steps.options(asked), values.get("min_gap_ns")))
        notes = [
            text for note in pack.notes.values() for text in self._session.sentences(packs.bind(note, values), table)
        ]
        return Answer(
            connection=self._session.connection,
            table=table,
            columns=tuple(
                Column(name, kind, pack.columns.get(name, ""), name in pack.details) for name, kind in columns
            ),
            report=pack.name,
            title=pack.title,
            params=values | asked,
            notes=tuple(notes),
            empty=self._empty(pack),
            trace=self.facts(),
        )

    def diagnose(self, **asked: Any) -> Diagnosis:
        """Say what bounds the run, what it costs, and what to do first; `asked` are the options about steps.

        Raises:
            UsageError: An option is wrong, or several traces are open.
        """
        from nsys_insight.diagnosis import diagnose

        if len(self.paths) > 1:
            raise UsageError("a diagnosis is of one trace", "open one of them")
        return diagnose(self, asked)

    def kept(self, view: str, asked: dict[str, Any]) -> AbstractContextManager[None]:
        """Work out a view of the model once for all queries in a block; `asked` are the options about steps."""
        return self._session.kept(view, Wanted(steps.options(asked)))

    def sql(self, query: str) -> pl.DataFrame:
        """Answer an SQL query over the model's views as a polars frame."""
        return self.query(query).frame()

    def query(self, query: str) -> Answer:
        """Answer an SQL query over the model's views."""
        return self.execute(Statement(one_query(query)))

    def execute(self, statement: Statement) -> Answer:
        """Answer one query of a text that `nsys_insight.statements.split` took apart."""
        self._say_which_ncu(statement.sql)
        table, columns = self._session.table(statement.sql, line=statement.line)
        return Answer(
            connection=self._session.connection,
            table=table,
            columns=tuple(Column(name, kind) for name, kind in columns),
            report="sql",
            title="",
            trace=self.facts(),
        )

    def define(self, statement: Statement) -> None:
        """Run the definition of a table, view or macro, for the queries after it.

        Raises:
            QueryError: It failed, or would hide what the views are made of.
        """
        self._say_which_ncu(statement.sql)
        self._session.define(statement)

    def stream(self, statement: Statement) -> Stream:
        """Answer a query while it runs, however much it returns."""
        self._say_which_ncu(statement.sql)
        return Stream(self._session, statement)

    def rows(self, query: str, **asked: Any) -> list[tuple[Any, ...]]:
        """Answer an SQL query whose `steps` are told as `nsys_insight.steps.StepOptions` says, as plain rows."""
        table, columns = self._session.table(query, Wanted(steps.options(asked)))
        answer = Answer(self._session.connection, table, tuple(Column(*column) for column in columns), "sql", "")
        return answer.rows()

    def facts(self) -> dict[str, Any]:
        """A few facts that an answer carries: the file's name, or those of several, and the scope."""
        scope = {name: value for name, value in vars(self._scope).items() if value is not None}
        if len(self.paths) > 1:
            return {"files": [path.name for path in self.paths], "scope": scope}
        return {"file": self.path.name, "scope": scope}

    def _say_which_ncu(self, statement: str) -> None:
        """Say once where ncu's data come from, when a query uses some that the user did not name."""
        if self.ncu is not None and self._options["ncu"] is None and "ncu_" in statement and not self._ncu_said:
            self._ncu_said = True
            self._options["note"](f"ncu's data are those of {self.ncu}")

    def _empty(self, pack: packs.Pack) -> str:
        if self._scope == WHOLE_TRACE:
            return pack.empty
        scope = " ".join(f"{name.removesuffix('_ns')} {value}" for name, value in self.facts()["scope"].items())
        return f"Nothing in this scope ({scope}). In a whole trace that would mean: {pack.empty}"

    def close(self) -> None:
        """Close the trace; its answers cannot be read afterwards."""
        self._session.connection.close()

    def __enter__(self) -> Self:
        """Use the trace as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it at the end of the block."""
        self.close()

    def __getattr__(self, name: str) -> Callable[..., pl.DataFrame]:
        """Give every pack as a method."""
        if name.startswith("_") or name.replace("_", "-") not in packs.known():
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return lambda **params: self.run(name, **params)

    def __dir__(self) -> list[str]:
        """Let a notebook complete the reports' names."""
        return [*super().__dir__(), *(name.replace("-", "_") for name in packs.known())]

    def __repr__(self) -> str:
        """Show what is opened."""
        scope = ", ".join(f"{name}={value!r}" for name, value in vars(self._scope).items() if value is not None)
        return f"<Trace {', '.join(repr(str(path)) for path in self.paths)}{' ' + scope if scope else ''}>"


def _file(path: Path, label: str, note: Callable[[str], None], progress: Callable[[int], None] | None) -> File:
    """Tell what a trace is, and make of it what can be queried."""
    kind = identify(path)
    if kind is Kind.REPORT:
        from nsys_insight.export import exported

        return File(exported(path, note=note, progress=progress), Kind.SQLITE, label)
    return File(settled(path, note) if kind is Kind.SQLITE else path, kind, label)
