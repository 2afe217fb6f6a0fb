"""Running queries over trace files: the answer's table, or an error that says what is wrong and what to do."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from nsys_insight.errors import InsightError, MetLateError, QueryError
from nsys_insight.facts.context import NOTHING_SAID
from nsys_insight.ingest.waiting import left_running
from nsys_insight.model import views
from nsys_insight.packs.step_options import AUTO
from nsys_insight.session import sandbox
from nsys_insight.session.answer import all_readable, without_zone
from nsys_insight.session.database import Database
from nsys_insight.session.prefetch import Prefetch, Question
from nsys_insight.session.stored_answers import read_rows, store_answer, store_answer_of_each
from nsys_insight.sql.quoting import identifier, literal
from nsys_insight.sql.statements import as_select, failed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import duckdb
    from duckdb import DuckDBPyConnection

    from nsys_insight.facts.context import FactOptions
    from nsys_insight.ingest.files import File
    from nsys_insight.ingest.limits import Limits
    from nsys_insight.ingest.scope import Scope
    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.answer import Batch, Columns
    from nsys_insight.session.store import Store
    from nsys_insight.session.stored_answers import Found, Rows, Table
    from nsys_insight.sql.statements import Statement

T = TypeVar("T")


class Connection:
    """Runs queries over one file or several in one scope."""

    def __init__(  # noqa: PLR0913 - what a connection is made of
        self,
        files: Sequence[File],
        scope: Scope,
        limits: Limits,
        *,
        use_cache: bool | None,
        timeout_s: float | None = None,
        ncu: Path | None = None,
        parts: Sequence[tuple[str, Scope]] = (),
        steps: StepOptions = AUTO,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Open the files, as `Database` does; a query may take so many seconds."""
        self._files = Database(files, scope, limits, use_cache=use_cache, ncu=ncu, parts=parts, steps=steps, note=note)
        self._bounded = sandbox.Runner(timeout_s)
        self._numbers = count(1)
        self._prefetch: Prefetch[Any] = Prefetch()
        self._is_ready = False

    @property
    def duckdb(self) -> duckdb.DuckDBPyConnection:
        """The connection in use: another one where the files had to be opened anew."""
        return self._files.duckdb

    @property
    def labels(self) -> list[str]:
        """What the traces are called, or the parts of one."""
        return self._files.labels

    @property
    def left_out(self) -> str:
        """What rows of the files cannot be true, once a query has met one."""
        return self._files.left_out

    def load(self) -> None:
        """Copy big exports into DuckDB first, where much is asked of all their rows."""
        self._files.load()

    def interrupt(self) -> None:
        """Stop what runs."""
        self._files.interrupt()
        self._prefetch.interrupt()

    def table(self, query: str, options: FactOptions = NOTHING_SAID, *, line: int = 0, ours: bool = False) -> Table:
        """Run a query over the model's views; return its result's table, with its columns' names and types.

        The facts that it reads, such as `steps`, are found as the `options` say. `line` is where the query begins in
        what the user wrote, for messages; with `ours`, the user wrote none of it.

        Raises:
            UsageError: Steps are to be told by an NVTX range that is not there.
            QueryError: The query failed.
            TraceError: The file cannot be read.
        """
        # The query begins on the second line of what DuckDB sees.
        answer, _ = self._stored(Question(query, (), options), line - 1, ours=ours)
        return answer

    def rows(self, query: str, options: FactOptions) -> Rows:
        """Run a query of ours as `table` does, and read its result."""
        asked = Question(query, (), options, for_rows=True)
        rows: Rows | None = self._worked_out(asked)
        if rows is not None:
            return rows
        if self._store_of(ours=True):
            table, columns = self.table(query, options, ours=True)
            query = f"SELECT {', '.join(identifier(name) for name, _ in columns)} FROM {table} ORDER BY row_"
            return read_rows(self.duckdb, query)

        def run() -> Rows:
            self._make_ready(asked, ours=True)
            return read_rows(self.duckdb, query)

        return self._run(run, -1, asked, ours=True)

    def report(self, asked: Question, *, ours: bool) -> Found:
        """Run a report's query as `table` does, and its notes: queries for sentences, over views and its `answer`.

        Raises:
            As `table`.
        """
        return self._stored(asked, -1, ours=ours)

    def ahead(self, questions: Iterable[Question]) -> None:
        """Work out answers to questions of ours that will be asked, several at a time; the first ones at once.

        What fails is left to be worked out when it is asked for.
        """
        import sqlite3

        import duckdb

        if not self._files.serve_several or self._bounded.seconds is not None:
            return
        with suppress(duckdb.Error, sqlite3.Error, UnicodeDecodeError, InsightError):
            self._bounded(self, lambda: self._prefetch.run(self.duckdb, self._alike(questions), self._worked))

    def _alike(self, questions: Iterable[Question]) -> Iterator[Question]:
        """The questions that need facts found as the first ones do: found otherwise, they would take their place."""
        used = set[tuple[str, object]]()
        for asked in questions:
            for statement in () if asked.is_built_in else asked.statements:
                sandbox.check(statement)
            also = used | self._files.options_used(asked)
            if len(dict(also)) == len(also):  # each option has one value
                used = also
                yield asked

    def _worked(self, connection: DuckDBPyConnection, asked: Question) -> Found | Rows:
        """Answer a question of ours over a connection beside others."""
        self._files.prepare_over(connection, asked)
        if asked.for_rows:
            return read_rows(connection, asked.query)
        name = f"internal.answer_{next(self._numbers)}"
        return store_answer(connection, name, asked)

    def report_of_each(self, asked: Question, *, ours: bool, ranks: Mapping[str, int]) -> Found:
        """Run a report as `report` does, of each of several traces by itself.

        See `stored_answers.store_answer_of_each` for the order of rows and the columns.

        Raises:
            As `table`.
        """
        name = f"memory.internal.answer_{next(self._numbers)}"

        def run() -> Found:
            self._make_ready(asked, each=True, ours=ours)
            return store_answer_of_each(self.duckdb, name, asked, self.labels, ranks)

        return self._run(run, -1, asked, ours=ours)

    def _stored(self, asked: Question, line: int, *, ours: bool) -> Found:
        """Run a query and its notes, or take their answer if it was worked out or is kept, as those of ours may be."""
        found: Found | None = self._worked_out(asked) if ours else None
        if found is not None:
            return found
        name = f"internal.answer_{next(self._numbers)}"

        def run() -> Found:
            store = self._store_of(ours=ours)
            if store and (kept := store.take(name, asked)):
                return kept
            began = perf_counter()
            self._make_ready(asked, ours=ours)
            answer, said = store_answer(self.duckdb, name, asked)
            if store := self._store_of(ours=ours):  # another, if the files were opened anew
                store.add(name, asked, said, perf_counter() - began)
            return answer, said

        return self._run(run, line, asked, ours=ours)

    def _worked_out(self, asked: Question) -> Any:
        """What was worked out ahead for a question of ours, if it was."""
        if self._files.definitions or (found := self._prefetch.take(asked, self.duckdb)) is None:
            return None
        self._files.check()
        return found

    def _store_of(self, *, ours: bool) -> Store | None:
        store = self._files.store
        return store if ours and store and store.keeps_answers and not self._files.definitions else None

    def stream(self, query: str, size: int, *, line: int = 0) -> tuple[Columns, Iterator[Batch]]:
        """Run a query and give its columns, and its rows in pieces of `size` while it still runs.

        Raises:
            QueryError: The query failed, at once or later.
            TraceError: The file cannot be read.
        """

        def start() -> tuple[Columns, Batch]:
            self._make_ready(Question(query))
            # Not on a cursor, which does not see the connection's temporary tables and macros.
            select = as_select(query)
            columns = [(name, kind) for name, kind, *_ in self.duckdb.execute(f"DESCRIBE {select}").fetchall()]
            if (readable := all_readable(columns)) != "*":
                select = f"SELECT {readable} FROM (\n{select}\n)"
            return [(name, without_zone(kind)) for name, kind in columns], self.duckdb.execute(select).fetchmany(size)

        columns, first = self._run(start, line, Question(query))
        return columns, self._batches(first, size)

    def write_parquet(self, query: str, path: Path, *, line: int = 0, options: str = "", ours: bool = False) -> int:
        """Write a query's result while it runs as a Parquet file, to a `sandbox.handover`; return how many rows.

        With `ours`, the user wrote none of it, and raw tables have the columns of the contract.
        """

        def run() -> int:
            self._make_ready(Question(query), ours=ours)
            copy = f"COPY (\n{as_select(query)}\n) TO {literal(str(path))} (FORMAT parquet{options})"
            return int(self.duckdb.execute(copy).fetchall()[0][0])

        return self._run(run, line - 1, Question(query), ours=ours)

    def define(self, statement: Statement) -> None:
        """Run the definition of a table, view or macro of the user's own."""
        own = (statement.creates, statement.is_macro)
        if own not in self._files.definitions:
            sandbox.check_name(self.duckdb, statement)

        def run() -> None:
            self._make_ready(Question(statement.sql))
            self.duckdb.execute(statement.sql)

        self._run(run, statement.line, Question(statement.sql), check=sandbox.check_definition)
        self._files.definitions[own] = statement.sql

    def _make_ready(self, asked: Question, *, each: bool = False, ours: bool = False) -> None:
        for statement, names in zip(asked.statements, asked.names, strict=True):
            self._files.prepare(statement, names, asked.options, each=each, ours=ours)
        self._is_ready = True

    def _run(
        self,
        run: Callable[[], T],
        line: int,
        asked: Question,
        *,
        ours: bool = False,
        check: Callable[[str], None] = sandbox.check,
    ) -> T:
        """Run what is asked, in the way that is open or one that gets over what stops it there."""
        import sqlite3

        import duckdb

        for statement in () if asked.is_built_in else asked.statements:  # tests/test_names.py checks those
            check(statement)
        again = True
        while True:
            self._is_ready = False
            try:
                done = self._bounded(self, run)
                self._files.check()
            except (duckdb.Error, sqlite3.Error, UnicodeDecodeError) as error:
                if not self._files.may_run_again(error, first=again):
                    raise self._failed(error, line, ours=ours or not self._is_ready) from None
                again = again and not isinstance(error, (duckdb.InternalException, duckdb.FatalException))
            except Exception:
                self._files.check()
                raise
            else:
                return done
            self._files.open()

    def _batches(self, first: Batch, size: int) -> Iterator[Batch]:
        import duckdb

        batch = first
        try:
            while batch:
                yield batch
                batch = self._bounded(self, lambda: self.duckdb.fetchmany(size))
            self._files.check()
        except duckdb.OutOfMemoryException as error:
            raise self._files.out_of_memory(error) from None
        except (duckdb.Error, UnicodeDecodeError) as error:
            if self._files.may_get_over(error):
                self._files.open()
                raise MetLateError(
                    "a row could not be read after others had been written",
                    "write to a file, which is restarted without it: -o answer.csv",
                ) from None
            raise self._failed(error, 0) from None

    def _failed(self, error: Exception, line: int, *, ours: bool = False) -> InsightError:
        told = self._files.why(error)
        if told:
            return told
        if ours:
            what = str(error).partition("\n")[0]
            return QueryError(f"this cannot be answered: {what}", "nsys-insight info shows what the trace contains")
        here = "schema_name = 'main' AND database_name = current_database()"
        named = f"SELECT DISTINCT column_name FROM duckdb_columns() WHERE {here} ORDER BY ALL"
        columns = [name for (name,) in self.duckdb.cursor().execute(named).fetchall()]
        return failed(error, line=line, names=(*views.documented(internal=False), *self._files.tables), columns=columns)

    def close(self) -> None:
        """Close the connection; what was found about a big trace stays in the cache folder."""
        if not left_running:
            self._prefetch.close()
        self._files.close()
