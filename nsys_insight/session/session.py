"""An open trace, or several: it answers reports and SQL queries, with notes that explain the numbers."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from nsys_insight import cache_folder, progress
from nsys_insight.errors import InsightError, TraceError, UsageError
from nsys_insight.facts.context import FactOptions
from nsys_insight.ingest import time_bounds
from nsys_insight.ingest.files import File, Kind, make_labels
from nsys_insight.ingest.gpus import GPU_TABLES
from nsys_insight.ingest.identify import identify, make_scannable
from nsys_insight.ingest.limits import choose_limits
from nsys_insight.ingest.ncu.store import find_store
from nsys_insight.ingest.scope import FULL_TRACE, Scope
from nsys_insight.ingest.waiting import StopSignal
from nsys_insight.packs import library, rank_sums
from nsys_insight.packs.flag_texts import naming_parameters
from nsys_insight.packs.step_options import AUTO, StepOptions, step_params_of
from nsys_insight.session.answer import Answer, Column
from nsys_insight.session.connection import Connection
from nsys_insight.session.database import Database
from nsys_insight.session.prefetch import Question
from nsys_insight.session.ranks import RANKS_QUERY, RankNumbers, list_rank_scopes, read_rank_numbers, write_sum_query
from nsys_insight.session.report_question import ReportQuestion, build_question, is_cross_rank
from nsys_insight.session.running_answer import RunningAnswer
from nsys_insight.session.sandbox import Runner
from nsys_insight.sql.names import parse_names
from nsys_insight.sql.quoting import literal
from nsys_insight.sql.rows import name_cells
from nsys_insight.sql.statements import Statement, read_one_query
from nsys_insight.text.suggestions import did_you_mean, quote_name
from nsys_insight.text.units import count_noun, time_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from nsys_insight.packs.pack import Pack
    from nsys_insight.session.self_check import FileCheck

_TRACE_COLUMNS = {"trace": "The trace of the row", "rank": "The rank of the trace, where known"}
_FAILED_LAUNCHES = """
SELECT 1 AS found FROM outer_api_calls WHERE call_group IN ('launch', 'graph launch')
HAVING count(*) > 0 AND count(*) FILTER (coalesce(return_value, 0) = 0) = 0"""
_SUMMED_NOTE = "{} ranks are summed; --ranks each has the rows of each rank"


class Session:
    """A trace, opened read-only, in a scope.

    Args:
        path: A `.nsys-rep` or `.qdrep` (exported with your nsys), its SQLite export, a parquetdir, or what
            ``nsys-insight convert`` made from one. Several traces are the ranks of a run, or traces to compare: every
            view and most reports then have a column `trace`.
        scope: The part of the trace to read.
        memory: The memory limit of a query, such as ``"2GB"``; beyond it, the query spills to disk. None chooses a
            limit for the machine, and raises it if necessary.
        threads: The maximum number of threads of a query. None means one per core, up to 8.
        timeout_s: The maximum time of a query in seconds.
        use_cache: True first makes a DuckDB copy in the cache folder, so that later questions about a big trace are
            faster. None uses such a copy if it exists. False neither reads nor writes the cache folder: the export of a
            report is then temporary.
        ncu: Data from Nsight Compute about the same program: a file that ``nsys-insight ncu import`` wrote, or a CSV
            page or report of ncu. None looks for ``NAME.ncu.duckdb`` next to the trace. False reads none.
        steps: How to find the steps that the scope selects.
        note: Called with every sentence for the user, about the trace and about every answer of a report:
            ``nsys_insight.open(path, note=print)``.
        progress: Called with the percentage while nsys exports a report.
        parts: Labels and scopes of parts of a single trace, which are treated as several traces.

    Raises:
        TraceError: The file cannot be read.
        ToolError: The report needs nsys, which is missing or failed.
    """

    def __init__(  # noqa: PLR0913 - options by keyword
        self,
        path: str | Path | Sequence[str | Path],
        *,
        scope: Scope = FULL_TRACE,
        memory: str | None = None,
        threads: int | None = None,
        timeout_s: float | None = None,
        use_cache: bool | None = None,
        ncu: str | Path | Literal[False] | None = None,
        steps: StepOptions = AUTO,
        note: Callable[[str], None] = lambda _: None,
        progress: Callable[[int], None] | None = None,
        parts: Sequence[tuple[str, Scope]] = (),
    ) -> None:
        """Open the trace and create the model over it."""
        self.paths = [Path(path)] if isinstance(path, str | Path) else list(map(Path, path))
        if not self.paths:
            raise UsageError("no trace is named", 'name a file: nsys_insight.open("trace.nsys-rep")')
        self.path = self.paths[0]
        self._scope = scope
        self._part_scopes = parts
        self._options: dict[str, Any] = {
            "memory": memory, "threads": threads, "timeout_s": timeout_s, "use_cache": use_cache, "ncu": ncu,
            "steps": steps, "note": note, "progress": progress,
        }  # fmt: skip
        has_several = len(self.paths) > 1 or bool(parts)
        if ncu and has_several:
            raise UsageError("ncu data belongs to one trace", "open one of the traces with it")
        can_use_cache = use_cache is not False and not cache_folder.refusal_reason()
        files = Runner(timeout_s, "opening the trace")(
            StopSignal(),
            lambda: [
                _open_file(trace_path, label, note, progress, can_use_cache=can_use_cache)
                for trace_path, label in zip(self.paths, make_labels(self.paths), strict=True)
            ],
        )
        self._has_noted_ncu = False
        self.ncu = (
            None
            if has_several or ncu is False
            else find_store(self.path, Path(ncu) if ncu else None, use_cache=can_use_cache)
        )
        limits = choose_limits([file.path for file in files], memory, threads)
        database = Database(
            files, scope, limits, use_cache=use_cache, ncu=self.ncu, steps=steps, note=note, part_scopes=parts
        )
        self._connection = Connection(database, timeout_s)
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
        """Return this trace, narrowed: ``trace.scope(nvtx="decode_step", device=0)``; see `ingest.scope.Scope`.

        Arguments that are not set stay unchanged. `steps` are the options for the selected steps.

        Raises:
            UsageError: The arguments exclude each other, or name nothing that is in the trace.
        """
        options = self._options | ({} if steps is None else {"steps": steps})
        with naming_parameters():
            arguments = vars(Scope(nvtx, phase, steady, step, from_ns, to_ns, device, process, stream))
            scope_parts: dict[str, Any] = {name: value for name, value in arguments.items() if value is not None}
            if not scope_parts.keys().isdisjoint(("steady", "step")):  # one selection of steps replaces the other
                scope_parts = {"steady": None, "step": None} | scope_parts
            scope = self._scope.narrowed(**scope_parts)
        return self._open_part(self.paths, scope, options)

    def open_with(self, traces: Sequence[Session]) -> Self:
        """Return this trace together with other traces, in the scope of this one: the ranks of a run."""
        return self._open_part([self.path, *(trace.path for trace in traces)], self._scope, self._options)

    def select_trace(self, path: Path, **scope: int) -> Self:
        """Return a single one of the open traces, narrowed by this scope."""
        return self._open_part(path, self._scope.narrowed(**scope), self._options)

    def _open_part(self, paths: Path | Sequence[Path], scope: Scope, options: dict[str, Any]) -> Self:
        """Open these files once more, in a scope. Together with this session, a replaced file would be two files."""
        part = type(self)(paths, scope=scope, **options)
        try:
            self._connection.files.check()
        except TraceError:
            part.close()
            raise
        return part

    @property
    def labels(self) -> list[str]:
        """Return the labels of the traces, or of the parts of a trace."""
        return self._connection.files.labels

    @property
    def shared_pids(self) -> dict[int, int]:
        """Return the pids that several processes have, by the `process_id` of each of these processes."""
        return self._connection.files.shared_pids

    def answer(self, report: str | Pack, *, steps: StepOptions | None = None, **params: Any) -> Answer:
        """Answer a report, with its notes and the descriptions of its columns.

        For several traces, a report about ranks has one answer; other reports have an answer per trace, with a column
        `trace` in front. Reports about steps take `steps`, or its options by name (`packs.step_options`).

        ``ranks="each"`` treats the processes of a trace that run NCCL as several traces. ``ranks="sum"`` sums over all
        ranks; this is the default if the traces are known to be one run (`packs.rank_sums`).

        Raises:
            UsageError: There is no such report, or a parameter is wrong.
        """
        pack, params = library.choose_pack(library.get_pack(report) if isinstance(report, str) else report, params)
        ranks = params.pop(rank_sums.PARAM.name, None)
        if ranks is not None and not is_cross_rank(pack):
            ranks = rank_sums.PARAM.value(ranks)
            if ranks == "sum" and not pack.ranks:
                raise UsageError(f"{pack.name} cannot be summed over ranks", "a row for each: --ranks each")
            if len(self.labels) == 1:
                return self.by_rank().answer(pack, steps=steps, ranks=ranks, **params)
        report_question = self._build_question(pack, params, steps)
        self._note_ncu_source(report_question.question.query)
        is_built_in = pack.is_built_in
        with progress.show_task(f"answering {pack.name}"):
            descriptions = dict(pack.columns)
            if len(self.labels) == 1 or is_cross_rank(pack):
                (table, columns), sentences = self._connection.report(report_question.question, is_built_in=is_built_in)
            else:
                numbers, is_run = self._read_rank_numbers()
                (table, columns), sentences = self._connection.report_per_trace(
                    report_question.question, is_built_in=is_built_in, ranks=numbers
                )
                descriptions |= _TRACE_COLUMNS
                if pack.ranks and (ranks == "sum" or (ranks is None and is_run)):
                    query, descriptions = write_sum_query(pack, table, columns, numbers, self.labels)
                    table, columns = self._connection.table(query, is_built_in=True)
                    report_question.notes.append("ranks")
                    sentences = [*sentences, [_SUMMED_NOTE.format(len(self.labels))]]
        self._refuse_missing(pack, params, table)
        notes = [(name, text) for name, texts in zip(report_question.notes, sentences, strict=True) for text in texts]
        return Answer(
            connection=self._connection.duckdb,
            table=table,
            columns=tuple(_make_column(pack, name, kind, descriptions) for name, kind in columns),
            report=pack.name,
            title=pack.title,
            params=report_question.values,
            notes=tuple(text for _, text in notes),
            note_names=tuple(name for name, _ in notes),
            empty=self._explain_empty(pack, table, report_question.question.options.steps.step_range),
            trace=self.describe_trace(),
            shared_pids=self._connection.files.shared_pids,
        )

    def prefetch(
        self,
        reports: Iterable[tuple[Pack, Mapping[str, Any]]],
        rows: Iterable[str] = (),
        steps: StepOptions | None = None,
    ) -> None:
        """Answer expected questions in advance, several at a time; failed ones are answered again when requested.

        Args:
            reports: Built-in reports, with their parameters.
            rows: Built-in queries that will be passed to `rows` or `dicts` as such.
            steps: Options about steps, for all questions.
        """
        if self._options["threads"] == 1:
            return
        options = FactOptions(steps or AUTO)
        row_questions = (Question(query, (), options, for_rows=True, is_built_in=True) for query in rows)
        self._connection.prefetch(chain(self._questions(reports, steps), row_questions))

    def _questions(
        self, reports: Iterable[tuple[Pack, Mapping[str, Any]]], steps: StepOptions | None
    ) -> Iterator[Question]:
        for pack, params in reports:
            with suppress(InsightError):
                yield self._build_question(pack, params, steps).question

    def _build_question(self, pack: Pack, params: Mapping[str, Any], steps: StepOptions | None) -> ReportQuestion:
        return build_question(pack, params, steps, self._scope, self._options["steps"])

    def by_rank(self) -> Self:
        """Return this trace as its ranks: the processes that run NCCL kernels, separated by GPU.

        Raises:
            UsageError: There are fewer than two ranks.
        """
        if self._by_rank is None:
            rank_rows = self.rows(RANKS_QUERY)
            if len(rank_rows) < 2:
                raise UsageError(
                    f"{self.path.name} has no ranks: no two processes or GPUs in it run NCCL kernels",
                    "name several traces, or omit --ranks",
                )
            rank_scopes = list_rank_scopes(rank_rows, self._scope)
            self._by_rank = self._open_part(self.paths, self._scope, {**self._options, "parts": rank_scopes})
        return self._by_rank

    def _read_rank_numbers(self) -> RankNumbers:
        return read_rank_numbers(self.rows(RANKS_QUERY), self.labels, are_parts=bool(self._part_scopes))

    def query(self, query: str) -> Answer:
        """Answer an SQL query over the model's views."""
        return self.execute(Statement(read_one_query(query)))

    def execute(self, statement: Statement) -> Answer:
        """Answer one of the queries that `sql.statements.split_statements` returns."""
        self._note_ncu_source(statement.sql)
        with progress.show_task("running the query"):
            table, columns = self._connection.table(statement.sql, line=statement.line)
        return self._answer(table, columns, trace=self.describe_trace())

    def define(self, statement: Statement) -> None:
        """Define a table, view or macro for later queries.

        Raises:
            QueryError: The definition failed, or would hide a name that the model uses.
        """
        self._note_ncu_source(statement.sql)
        with progress.show_task(f"making {statement.defined_name}"):
            self._connection.define(statement)

    def stream(self, statement: Statement) -> RunningAnswer:
        """Answer a query while it runs; the result can be larger than memory."""
        self._note_ncu_source(statement.sql)
        return RunningAnswer(self._connection, statement)

    def rows(self, query: str, steps: StepOptions = AUTO, *, is_built_in: bool = False) -> list[Any]:
        """Answer an SQL query as rows with cells as attributes; `steps` are options about steps.

        `is_built_in`: the query is a file of the package. The sandbox does not parse and check it again.
        """
        return name_cells(*self._connection.rows(query, FactOptions(steps), is_built_in=is_built_in))

    def dicts(self, query: str, steps: StepOptions = AUTO, *, is_built_in: bool = False) -> list[dict[str, Any]]:
        """Answer an SQL query as `rows` does, with each row as a dictionary of cells by column."""
        names, rows = self._connection.rows(query, FactOptions(steps), is_built_in=is_built_in)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def refuse_changed_files(self) -> None:
        """Check that the files are those that were opened.

        Raises:
            TraceError: One was replaced, written to or removed.
        """
        self._connection.files.check()

    def drop_invalid_rows(self) -> bool:
        """Leave out rows that are impossible, as a query does that meets one; return False if this is done already."""
        return self._connection.drop_invalid_rows()

    def load(self) -> None:
        """Copy a big export into DuckDB; this saves time for a dozen or more questions (`OpenStrategies`)."""
        self._connection.load()

    def describe_trace(self) -> dict[str, Any]:
        """Describe the trace for an answer: its file name or names, the scope, and the rows that are left out."""
        description: dict[str, Any] = {"file": self.path.name}
        if len(self.paths) > 1:
            description = {"files": [path.name for path in self.paths]}
        description["scope"] = self._scope.filters
        if self._connection.files.left_out:
            description["left_out"] = self._connection.files.left_out
        return description

    def describe_unread_tables(self) -> tuple[str, ...]:
        """Name the tables of events in the files that no view reads, with their rows: one sentence for each trace."""
        from nsys_insight.session import self_check

        row_counts = [self_check.count_unread_rows(file) for file in self._connection.files.files]
        tables = (
            ", ".join(f"{name} ({count_noun(count, 'row')})" for name, count in counts.items()) for counts in row_counts
        )
        return tuple(f"tables that no report reads: {text} (nsys stats has reports on some)" for text in tables if text)

    def check_files(self, *, is_complete: bool = True) -> list[FileCheck]:
        """Compare rows and sums of the views with those that SQLite reads in the files; return a check of each trace.

        Without `is_complete`, files with more than `self_check.MAX_ROWS` rows are not checked. A scope has no checks.

        Raises:
            TraceError: A file cannot be read.
        """
        from nsys_insight.session import self_check

        if self._scope != FULL_TRACE or self._part_scopes:
            return []
        runner = Runner(self._options["timeout_s"], "the check")
        files = list(zip(self.paths, self._connection.files.files, strict=True))
        row_count = runner(StopSignal(), lambda: sum(self_check.count_rows(file) for _, file in files))
        can_compare = any(file.kind is Kind.SQLITE for _, file in files)
        if not can_compare or (row_count > self_check.MAX_ROWS and not is_complete):
            return [self_check.describe_unchecked(path, file, row_count) for path, file in files]
        # Not `rows`, which can return what an earlier session stored.
        sums = self_check.collect_sums(self.execute(Statement(self_check.write_sum_query(self.labels))).dicts())
        windows = self._connection.files.windows  # the query may have opened the files again
        return runner(
            StopSignal(),
            lambda: [
                self_check.check_file(path, file, sums.get(file.label, {}), window)
                for (path, file), window in zip(files, windows, strict=True)
            ],
        )

    def refuse_several(self, message: str, hint: str) -> None:
        """Refuse an operation that supports one trace only.

        Raises:
            UsageError: Several traces are open.
        """
        if len(self.paths) > 1:
            raise UsageError(message, hint)

    def _answer(self, table: str, columns: list[tuple[str, str]], **facts: Any) -> Answer:
        answer_columns = tuple(Column(name, kind) for name, kind in columns)
        facts["shared_pids"] = self._connection.files.shared_pids
        return Answer(self._connection.duckdb, table, answer_columns, report="sql", title="", **facts)

    def _note_ncu_source(self, statement: str) -> None:
        """Note once which file ncu's data are from, when a query uses data that the user did not name."""
        if self.ncu is None or self._options["ncu"] is not None or self._has_noted_ncu:
            return
        if "ncu_" in statement and any(
            name.lstrip("_").startswith("ncu_") for name in parse_names(statement).model_names
        ):
            self._has_noted_ncu = True
            self._options["note"](f"ncu data is from {self.ncu}")

    def _refuse_missing(self, pack: Pack, params: Mapping[str, Any], table: str) -> None:
        """Refuse a parameter that names nothing in a trace that has such names.

        Raises:
            UsageError: Nothing has this name; the hint has the most similar names, or the first ones.
        """
        for param in pack.params.values():
            value = params.get(param.name)
            if not param.names or value is None or self._connection.duckdb.execute(f"FROM {table} LIMIT 1").fetchall():
                continue
            names = [str(name) for (name,) in self.rows(param.names)]
            if names and str(value) not in names:
                examples = f"there are: {', '.join(map(quote_name, names[:3]))}{' …' if names[3:] else ''}"
                raise UsageError(
                    f"there is no {param.noun} {value!r}", did_you_mean(str(value), names, 3, quoted=True) or examples
                )

    def _explain_empty(self, pack: Pack, table: str, step_range: str | None) -> str:
        is_full = self._scope == FULL_TRACE
        text = f"Nothing in this scope ({self._scope.flags_text})"
        if self._connection.duckdb.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchall():
            return pack.empty_text if is_full else text
        if is_full:
            is_single = len(self.labels) == 1
            reason = self._explain_no_steps(pack, step_range) if is_single else ""
            # What an empty answer of a full trace means depends on more than the report where it advises something.
            if reason or not (is_single and pack.advice):
                return reason or pack.empty_text
            return "; ".join(filter(None, (pack.empty, self._correct_advice(pack.advice))))
        if self._scope.range_pattern is not None and not self.rows("SELECT 1 AS found FROM gpu_ops LIMIT 1"):
            return f"{text}: no GPU work was launched in it."
        return f"{text}{self.describe_gpu_time()}; leave the scope out to see whether the trace has such rows at all"

    @cached_property
    def _has_gpu_work(self) -> bool:
        return bool(self.rows("SELECT 1 AS found FROM gpu_ops LIMIT 1"))

    def _explain_no_steps(self, pack: Pack, step_range: str | None) -> str:
        """Say that a report about steps is empty because the trace has no GPU work; "" where that is not why."""
        if not step_params_of(pack.names) or self._has_gpu_work:
            return ""
        ranges = self._describe_ranges(step_range) if step_range else ""
        if ranges or pack.advice:
            return ranges
        return "This trace has no GPU work, which this report is about: nsys-insight diagnose says what the trace has"

    def _describe_ranges(self, pattern: str) -> str:
        """Describe the NVTX ranges of the requested steps in a trace without GPU work; "" without such ranges."""
        any_number = literal(pattern.replace("#", "*"))
        ((count, mean_ns),) = self.rows(
            "SELECT count(*) AS ranges, avg(duration_ns) AS mean_ns FROM nvtx_ranges"
            f" WHERE fits_pattern(name, {any_number}) AND end_ns IS NOT NULL"
        )
        if not count:
            return ""
        ranges = "1 NVTX range is" if count == 1 else f"{count} NVTX ranges are"
        return (
            f"{ranges} named {pattern}, but this trace has no GPU work, which steps need. A range"
            f" takes {time_text(mean_ns)} on average: see nsys-insight nvtx"
        )

    def _correct_advice(self, advice: str) -> str:
        """Do not advise to record what is recorded: say what is known instead."""
        if "--sample" in advice:
            has_samples = self.rows("SELECT 1 AS found FROM _sample_period LIMIT 1")
            return "CPU samples are recorded, at other times" if has_samples else advice
        if "nvtx" in advice:
            is_traced = self.rows("SELECT 1 AS found FROM _capture_settings WHERE traces_nvtx")
            return "NVTX was traced, so mark ranges" + advice.partition("mark ranges")[2] if is_traced else advice
        if advice and self.rows(_FAILED_LAUNCHES):
            return "every launch failed, so no kernel ran (nsys-insight diagnose has the error)"
        if advice and self.rows("SELECT 1 AS found FROM _call_counts LIMIT 1"):
            return "CUDA calls are recorded (nsys-insight diagnose says what is missing)"
        if advice and self.rows("SELECT 1 AS found FROM _capture_settings WHERE traces_cuda"):
            return "CUDA was traced, but no call is recorded (nsys-insight diagnose)"
        return advice

    def describe_gpu_time(self) -> str:
        """Say when the GPU works in the full trace, after a semicolon; "" if the scope has no time window."""
        if self._scope.from_ns is None and self._scope.to_ns is None:
            return ""
        ((start_ns, end_ns),) = self._connection.duckdb.execute(
            time_bounds.select_time_bounds({}, schema="unscoped", tables=GPU_TABLES)
        ).fetchall()
        if start_ns is None:
            return "; the whole trace has no GPU work"
        return f"; GPU activity spans {time_text(start_ns)} to {time_text(end_ns)}"

    def close(self) -> None:
        """Close the trace; its answers cannot be read afterwards."""
        if self._by_rank is not None:
            self._by_rank.close()
        self._connection.close()

    def __enter__(self) -> Self:
        """Use the trace as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the trace at the end of the block."""
        self.close()

    def __repr__(self) -> str:
        """Show the files and the scope."""
        scope = ", ".join(f"{name}={value!r}" for name, value in self._scope.filters.items())
        files = ", ".join(repr(str(path)) for path in self.paths)
        return f"<{type(self).__name__} {files}{' ' + scope if scope else ''}>"


def _open_file(
    path: Path, label: str, note: Callable[[str], None], progress: Callable[[int], None] | None, *, can_use_cache: bool
) -> File:
    """Identify the kind of a trace, and return a file that can be queried."""
    kind = identify(path)
    if kind is Kind.REPORT:
        from nsys_insight.ingest.export import get_export

        return File(get_export(path, note=note, progress=progress, use_cache=can_use_cache), Kind.SQLITE, label)
    return File(make_scannable(path, note, use_cache=can_use_cache) if kind is Kind.SQLITE else path, kind, label)


def _make_column(pack: Pack, name: str, kind: str, means: Mapping[str, str]) -> Column:
    return Column(
        name, kind, means.get(name, ""), name in pack.details, pack.display_position(name), pack.shares.get(name, "")
    )
