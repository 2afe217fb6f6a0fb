"""Run queries over trace files: return the table of the answer, or raise an error with cause and remedy."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from nsys_insight.errors import InsightError, QueryError, UnreadableRowError, UsageError
from nsys_insight.ingest.catalogs import open_cursor
from nsys_insight.ingest.waiting import left_running
from nsys_insight.model import views
from nsys_insight.packs.library import find_pack
from nsys_insight.session import sandbox
from nsys_insight.session.answer import Batch, Columns, readable_type, select_readable
from nsys_insight.session.prefetch import Prefetch, Question
from nsys_insight.session.stored_answers import read_rows, store_answer, store_answer_per_trace
from nsys_insight.sql.quoting import identifier, literal
from nsys_insight.sql.statements import Statement, as_select, explain_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    import duckdb
    from duckdb import DuckDBPyConnection

    from nsys_insight.facts.context import FactOptions
    from nsys_insight.session.database import Database
    from nsys_insight.session.store import Store
    from nsys_insight.session.stored_answers import Rows, StoredAnswer, Table

T = TypeVar("T")


class Connection:
    """Runs queries over open `files`: one or several in one scope."""

    def __init__(self, files: Database, timeout_s: float | None = None) -> None:
        """Open the files; `timeout_s` limits the time of a query, and of opening."""
        self.files = files
        self._runner = sandbox.Runner(timeout_s)
        self._numbers = count(1)
        self._prefetch: Prefetch[Any] = Prefetch()
        self._is_prepared = self._is_closed = False
        sandbox.Runner(timeout_s, "opening the trace")(self, self.files.open)

    @property
    def duckdb(self) -> duckdb.DuckDBPyConnection:
        """Return the current connection. It changes when the files are opened again."""
        return self.files.duckdb

    def load(self) -> None:
        """Copy big exports into DuckDB first; worth it for many questions about all rows."""
        self._refuse_closed()
        self.files.load()

    def drop_invalid_rows(self) -> bool:
        """Check all rows and leave out the impossible ones; return False if this is done already."""
        if not self.files.recovery.prepare_row_checks():
            return False
        self._runner(self, self.files.open)
        return True

    def interrupt(self) -> None:
        """Stop all running queries and copies."""
        self.files.interrupt()
        self._prefetch.interrupt()

    def table(self, query: str, *, line: int = 0, is_built_in: bool = False) -> Table:
        """Run a query over the model's views; return the table of the result, with the names and types of its columns.

        `line` is the line of the user's text on which the query begins, for error messages. `is_built_in`: the query
        comes with the package.

        Raises:
            UsageError: Steps are defined by an NVTX range that does not exist.
            QueryError: The query failed.
            TraceError: The file cannot be read.
        """
        # DuckDB sees the query from its second line on.
        answer, _ = self._store_answer(Question(query), line - 1, is_built_in=is_built_in)
        return answer

    def rows(self, query: str, options: FactOptions, *, is_built_in: bool) -> Rows:
        """Run a query of this program as `table` does, and return its rows.

        `is_built_in`: it is a file of the package, whose names and functions need no check (`Question`).
        """
        question = Question(query, (), options, for_rows=True, is_built_in=is_built_in)
        rows: Rows | None = self._take_prefetched(question)
        if rows is not None:
            return rows
        if self._choose_store(is_built_in=True):
            (table, columns), _ = self._store_answer(question._replace(for_rows=False), -1, is_built_in=True)
            query = f"SELECT {', '.join(identifier(name) for name, _ in columns)} FROM {table} ORDER BY row_"
            return read_rows(self.duckdb, query)

        def run() -> Rows:
            self._prepare(question, is_built_in=True)
            return read_rows(self.duckdb, query)

        return self._run(run, -1, question, is_built_in=True)

    def report(self, question: Question, *, is_built_in: bool) -> StoredAnswer:
        """Run the query of a report as `table` does, and its notes: queries for sentences, which can read `answer`.

        Raises:
            InsightError: See `table`.
        """
        return self._store_answer(question, -1, is_built_in=is_built_in)

    def prefetch(self, questions: Iterable[Question]) -> None:
        """Answer built-in questions in advance, several at a time.

        A question that fails is answered again when its answer is requested.
        """
        import sqlite3

        import duckdb

        if not self.files.can_prefetch or self._runner.seconds is not None:
            return
        with suppress(duckdb.Error, sqlite3.Error, UnicodeDecodeError, InsightError):
            self._runner(
                self,
                lambda: self._prefetch.run(self.duckdb, self._with_consistent_options(questions), self._answer_on),
            )

    def _with_consistent_options(self, questions: Iterable[Question]) -> Iterator[Question]:
        """Yield the questions with the same options as the first ones: other options would replace their facts."""
        options_in_use = set[tuple[str, object]]()
        for question in questions:
            for statement in () if question.is_built_in else question.statements:
                sandbox.check_query(statement)
            combined = options_in_use | self.files.collect_options(question)
            if len(dict(combined)) == len(combined):  # each option has one value
                options_in_use = combined
                yield question

    def _answer_on(self, connection: DuckDBPyConnection, question: Question) -> StoredAnswer | Rows:
        """Answer a built-in question over one of several connections."""
        self.files.prepare_on(connection, question)
        if question.for_rows:
            return read_rows(connection, question.query)
        name = f"internal.answer_{next(self._numbers)}"
        return store_answer(connection, name, question)

    def report_per_trace(self, question: Question, *, is_built_in: bool, ranks: Mapping[str, int]) -> StoredAnswer:
        """Run a report separately for each of several traces, otherwise as `report` does.

        See `stored_answers.store_answer_per_trace` for the order of rows and the columns.

        Raises:
            InsightError: See `table`.
        """
        name = f"memory.internal.answer_{next(self._numbers)}"

        def run() -> StoredAnswer:
            self._prepare(question, per_trace=True, is_built_in=is_built_in)
            return store_answer_per_trace(self.duckdb, name, question, self.files.labels, ranks)

        return self._run(run, -1, question, is_built_in=is_built_in)

    def _store_answer(self, question: Question, line: int, *, is_built_in: bool) -> StoredAnswer:
        """Run a query and its notes, or return their prefetched or stored answer, which built-in queries can have."""
        prefetched: StoredAnswer | None = self._take_prefetched(question) if is_built_in else None
        if prefetched is not None:
            return prefetched
        name = f"internal.answer_{next(self._numbers)}"

        def run() -> StoredAnswer:
            store = self._choose_store(is_built_in=is_built_in)
            if store and (stored_answer := store.take(name, question)):
                return stored_answer
            start_s = perf_counter()
            self._prepare(question, is_built_in=is_built_in)
            answer, notes = store_answer(self.duckdb, name, question)
            if store := self._choose_store(is_built_in=is_built_in):  # another one if the files were opened again
                store.add(name, question, notes, perf_counter() - start_s)
            return answer, notes

        return self._run(run, line, question, is_built_in=is_built_in)

    def _take_prefetched(self, question: Question) -> Any:
        """Take the prefetched answer to a built-in question, if there is one."""
        if self._is_closed or self.files.definitions or (answer := self._prefetch.take(question, self.duckdb)) is None:
            return None
        self.files.check()
        return answer

    def _choose_store(self, *, is_built_in: bool) -> Store | None:
        store = self.files.store
        return store if is_built_in and store and store.stores_answers and not self.files.definitions else None

    def stream(self, query: str, size: int, *, line: int = 0) -> tuple[Columns, Iterator[Batch]]:
        """Run a query; return its columns, and its rows in batches of `size` while it still runs.

        Raises:
            QueryError: The query failed, immediately or later.
            TraceError: The file cannot be read.
        """

        def start() -> tuple[Columns, Batch]:
            self._prepare(Question(query))
            # A cursor would not see the temporary tables and macros of the connection.
            select = as_select(query)
            columns = [(name, kind) for name, kind, *_ in self.duckdb.execute(f"DESCRIBE {select}").fetchall()]
            if (readable := select_readable(columns, self.files.shared_pids)) != "*":
                select = f"SELECT {readable} FROM (\n{select}\n)"
            return [(name, readable_type(kind)) for name, kind in columns], self.duckdb.execute(select).fetchmany(size)

        columns, first = self._run(start, line, Question(query))
        return columns, self._batches(first, size)

    def write_parquet(
        self, query: str, path: Path, *, line: int = 0, options: str = "", is_built_in: bool = False
    ) -> int:
        """Write the result of a query to a Parquet file while it runs; return the number of rows.

        `path` comes from `sandbox.open_writable_path`. `is_built_in`: the query comes with the package and reads only
        columns of the expected schema from raw tables.
        """

        def run() -> int:
            self._prepare(Question(query), is_built_in=is_built_in)
            select = as_select(query)
            if self.files.shared_pids:
                columns = [(name, kind) for name, kind, *_ in self.duckdb.execute(f"DESCRIBE {select}").fetchall()]
                select = f"SELECT {select_readable(columns, self.files.shared_pids)} FROM (\n{select}\n)"
            copy = f"COPY (\n{select}\n) TO {literal(str(path))} (FORMAT parquet{options})"
            return int(self.duckdb.execute(copy).fetchall()[0][0])

        return self._run(run, line - 1, Question(query), is_built_in=is_built_in)

    def define(self, statement: Statement) -> None:
        """Run a user's definition of a table, view or macro."""
        definition = (statement.defined_name, statement.is_macro)
        if definition not in self.files.definitions:
            sandbox.check_name(self.duckdb, statement)

        def run() -> None:
            self._prepare(Question(statement.sql))
            self.duckdb.execute(statement.sql)

        self._run(run, statement.line, Question(statement.sql), check=sandbox.check_definition)
        self.files.definitions[definition] = statement.sql

    def _prepare(self, question: Question, *, per_trace: bool = False, is_built_in: bool = False) -> None:
        for statement, names in zip(question.statements, question.names, strict=True):
            self.files.prepare(statement, names, question.options, per_trace=per_trace, is_built_in=is_built_in)
        self._is_prepared = True

    def _run(
        self,
        run: Callable[[], T],
        line: int,
        question: Question,
        *,
        is_built_in: bool = False,
        check: Callable[[str], None] = sandbox.check_query,
    ) -> T:
        """Run a question over the open files; if it fails, retry or fall back to the next way to open them."""
        import sqlite3

        import duckdb

        self._refuse_closed()
        if not question.is_built_in:  # tests/test_names.py checks built-in statements
            for statement in question.statements:
                check(statement)
        self.files.check()  # a pipe in the place of a file would be waited for
        is_first_crash = True
        while True:
            self._is_prepared = False
            try:
                returned = self._runner(self, run)
                self.files.check()
            except (duckdb.Error, sqlite3.Error, UnicodeDecodeError) as error:
                if not self.files.recovery.prepare_retry(error, is_first_crash=is_first_crash):
                    raise self._explain_failure(
                        error, line, question, is_built_in=is_built_in or not self._is_prepared
                    ) from None
                is_first_crash = is_first_crash and not isinstance(
                    error, (duckdb.InternalException, duckdb.FatalException)
                )
            except Exception:
                self.files.check()
                raise
            else:
                return returned
            self._runner(self, self.files.open)

    def _batches(self, first: Batch, size: int) -> Iterator[Batch]:
        import duckdb

        batch = first
        try:
            while batch:
                yield batch
                batch = self._runner(self, lambda: self.duckdb.fetchmany(size))
            self.files.check()
        except duckdb.OutOfMemoryException as error:
            raise self.files.recovery.out_of_memory(error) from None
        except (duckdb.Error, UnicodeDecodeError) as error:
            if self.files.recovery.prepare_fallback(error):
                self._runner(self, self.files.open)
                raise UnreadableRowError(
                    "a row could not be read after others had been written",
                    "write to a file, which is restarted without it: -o answer.csv",
                ) from None
            raise self._explain_failure(error, 0) from None

    def _explain_failure(
        self, error: Exception, line: int, question: Question | None = None, *, is_built_in: bool = False
    ) -> InsightError:
        cause = self.files.find_cause(error)
        if cause:
            return cause
        if is_built_in:
            if too_large := self.files.recovery.too_large_numbers(error):
                return too_large
            reason = str(error).partition("\n")[0]
            return QueryError(f"this cannot be answered: {reason}", "nsys-insight info shows what the trace contains")
        in_model = "schema_name = 'main' AND database_name = current_database()"
        column_query = f"SELECT DISTINCT column_name FROM duckdb_columns() WHERE {in_model} ORDER BY ALL"
        columns = [name for (name,) in open_cursor(self.duckdb).execute(column_query).fetchall()]
        view_names = (*views.documented_views(internal=False), *self.files.tables)
        read_names = {name for names in question.names for name in names.model_relations} if question else set()
        query_columns = {
            view: [
                name
                for (name,) in open_cursor(self.duckdb)
                .execute(
                    f"SELECT column_name FROM duckdb_columns() WHERE {in_model} AND table_name = {literal(view)}"
                    " ORDER BY column_index"
                )
                .fetchall()
            ]
            for view in sorted(read_names & set(view_names))
        }
        return explain_failure(
            error,
            line=line,
            names=view_names,
            columns=columns,
            query_columns=query_columns,
            describe_report=_describe_report,
        )

    def _refuse_closed(self) -> None:
        if self._is_closed:
            raise UsageError("the trace is closed", 'open it again: nsys_insight.open("trace.nsys-rep")')

    def close(self) -> None:
        """Close the connection; facts about a big trace stay in the cache folder."""
        self._is_closed = True
        if not left_running:
            self._prefetch.close()
        self.files.close()


def _describe_report(name: str) -> str:
    """Return a hint for a report that was taken for a view: its command, and the views that it reads."""
    pack = find_pack(name.replace("_", "-"))
    if pack is None:
        return ""
    read_views = sorted(pack.names.model_relations & views.documented_views(internal=False).keys())
    reads = f", which reads {', '.join(read_views)}" if read_views else ""
    return f"{name} is a report{reads}: nsys-insight {pack.name}"
