"""What every pack promises, whatever its question: each `.sql` file in `queries` is held to it when it is added."""

from __future__ import annotations

import math
import re
import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path

import duckdb
import pytest
import typer
from synthetic import Trace

import nsys_insight
from nsys_insight import flags, load, model, packs, units

SAMPLES = Path(__file__).parents[1] / "sample_traces"
PACKS = packs.built_in()
TYPES = {"BIGINT", "INTEGER", "DOUBLE", "VARCHAR", "BOOLEAN"}
EXAMPLES = {int: 3, float: 0.5, str: "norm"}
# Columns that older versions of nsys lack.
OPTIONAL = {
    "greenContextId", "mangledName", "launchType", "sharedMemoryExecuted", "graphNodeId", "copyCount", "srcKind", "dstKind",
    "memKind", "callchainId", "deprecatedSyncType", "eventSyncId", "endGlobalTid", "textId", "rangeId",
    "CUDA_GPU_MEMORY_USAGE_EVENTS.streamId", "CUDA_GPU_MEMORY_USAGE_EVENTS.memKind", "localMemoryPoolSize",
}  # fmt: skip
SCOPES = {
    "nvtx": {"nvtx": "step"},
    "from": {"from_ns": 300_000},
    "to": {"to_ns": 300_000},
    "device": {"device": 1},
    "process": {"process": 200},
    "stream": {"stream": 13},
}

every_pack = pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS.keys())


def everything(*, any_version: bool = False) -> Trace:
    """Give a trace with all that a trace may hold, and many ties; or only what any version of nsys could write."""
    trace = Trace()
    for pid, device in ((100, 0), (200, 1)):
        host = trace.thread(pid=pid)
        host.range("epoch", host.now, None).range("request", 50_000, 400_000, style="start/end")
        for _ in range(4):
            with host.nvtx("step"):
                host.copy("H2D", 4096, device=device, source="pageable")
                with host.nvtx("layer", domain="model"):
                    for stream in (7, 13):
                        host.launch("void norm<float>(float *)", runs=2_000, stream=stream, device=device)
                        host.launch("gemm(float *)", runs=2_000, stream=stream, device=device, grid=(64, 1, 1), registers=200)
                host.launch("gemm(half *)", runs=2_000, device=device, driver="cuLaunchKernelEx", launch_type="Coop Single Device")
                host.memset(256, device=device).malloc(1 << 20, device=device).free()
                host.graph_launch(kernels=[("gemm(float *)", 2_000), ("relu", 0)], stream=13, device=device)
                if not any_version:
                    host.graph_launch(whole=3_000, device=device)
                host.record(1, stream=13, device=device).sync("event", event=1, device=device)
                host.copy("D2H", 64, device=device).sync("stream", device=device).sync("device", device=device)
                host.copy("D2H", 64, device=device, target="pageable", blocking=True).copy("D2D", 512, device=device)
            host.osrt("poll", takes=20_000).idle(5_000)
        host.kernel("stray", at=host.now, device=device).call("cudaLaunchKernel_v7000").mark("here", host.now)
        trace.overhead("CUPTI Buffer flush", 1_000, 9_000, host)
    if not any_version:
        trace.diagnostic("Not all CUDA events might have been collected.").diagnostic("No.", severity="Error")
        for at in range(0, 100_000, 10_000):
            trace.gpu_metric("SMs Active [Throughput %]", at=at, value=50).gpu_metric("DRAM Read", at=at, value=7)
    return trace


def without(trace: Trace, columns: set[str]) -> Trace:
    """Give the same trace with these columns NULL."""
    for table, rows in trace.rows.items():
        for row in rows:
            for column in columns:
                owner, _, name = column.rpartition(".")
                if owner in ("", table):
                    row.pop(name, None)
    return trace


def shuffled(source: Path, target: Path) -> Path:
    """Copy a real export with the rows of each table in another order."""
    target.write_bytes(source.read_bytes())
    with closing(sqlite3.connect(target)) as database, database:
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            database.execute(f'CREATE TEMP TABLE kept AS SELECT * FROM main."{table}" ORDER BY rowid * 7919 % 10007, rowid')
            database.execute(f'DELETE FROM main."{table}"')
            database.execute(f'INSERT INTO main."{table}" SELECT * FROM kept ORDER BY rowid')
            database.execute("DROP TABLE kept")
    return target


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Give the same trace in many files."""
    folder = tmp_path_factory.mktemp("traces")
    bare = without(everything(), OPTIONAL)
    return {
        "plain": everything().write(folder / "plain.sqlite"),
        "shuffled": everything().write(folder / "shuffled.sqlite", shuffle=1),
        "shuffled otherwise": everything().write(folder / "shuffled2.sqlite", shuffle=2),
        "with empty tables": everything().write(folder / "empty_tables.sqlite", lazy=False),
        "NULL columns": bare.write(folder / "null_columns.sqlite"),
        "missing columns": bare.write(folder / "missing_columns.sqlite", without_columns=OPTIONAL),
        "2025.3": everything(any_version=True).write(folder / "2025.sqlite"),
        "2023.4": everything(any_version=True).write(folder / "2023.sqlite", version="2023.4"),
        "2022.2": everything(any_version=True).write(folder / "2022.sqlite", version="2022.2"),
        "sample": SAMPLES / "churn.sqlite",
        "sample, shuffled": shuffled(SAMPLES / "churn.sqlite", folder / "churn.sqlite"),
        "sample with graphs": SAMPLES / "decode_graph_node.sqlite",
        "sample with graphs, shuffled": shuffled(SAMPLES / "decode_graph_node.sqlite", folder / "graph.sqlite"),
        "nothing": Trace().write(folder / "nothing.sqlite"),
        "calls only": calls_only().write(folder / "calls.sqlite"),
        "kernels only": kernels_only().write(folder / "kernels.sqlite"),
    }


def calls_only():
    trace = Trace()
    trace.thread().call("cudaLaunchKernel_v7000").call("cudaGetDevice")
    return trace


def kernels_only():
    trace = Trace()
    trace.thread().kernel("k", at=0).kernel("k", at=5_000)
    return trace


@pytest.fixture(scope="module")
def traces(files):
    """Give these files as opened traces, in a scope or not, each opened when it is first asked for."""
    opened = {}

    def open_once(name, scope=None, *, use_cache=False):
        key = (name, scope, use_cache)
        if key not in opened:
            trace = nsys_insight.open(files[name], use_cache=use_cache)
            opened[key] = trace.scope(**SCOPES[scope]) if scope else trace
        return opened[key]

    yield open_once
    for trace in opened.values():
        trace.close()


@pytest.fixture(scope="module")
def ask(traces):
    """Give a pack's answers to all questions about a file, in their order, with the notes beside them."""
    known = {}

    def ask_once(pack, *place, **options):
        key = (pack.name, *place, *options.items())
        if key not in known:
            trace = traces(*place, **options)
            answers = [trace.answer(pack.name, **question) for question in questions(pack)]
            known[key] = [(answer.params, answer.columns, answer.rows(), answer.notes) for answer in answers]
        return known[key]

    return ask_once


@contextmanager
def without_extension():
    """Have DuckDB's SQLite extension not be there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(load, "scanner", lambda: None)
        yield


def questions(pack):
    """Give the ways to ask a pack: as it is, and with every choice and an example of every parameter."""
    needed = {param.name: EXAMPLES[param.kind] for param in pack.params.values() if param.required_without}
    found = [needed]
    for param in pack.params.values():
        if param.kind is bool:
            found.append({**needed, param.name: not param.default})
        else:
            found += [{**needed, param.name: value} for value in param.choices or [EXAMPLES[param.kind]]]
    return found


def assert_same(left, right):
    """Compare answers, rows in their order; sums of floats may differ in the last digits with the order of adding."""
    for (params, columns, rows, notes), (_, other_columns, other_rows, other_notes) in zip(left, right, strict=True):
        assert columns == other_columns
        assert len(rows) == len(other_rows), params
        for row, other in zip(rows, other_rows, strict=True):
            assert all(map(same_cell, row, other)), (params, row, other)
        assert notes == other_notes, params


def same_cell(left, right):
    return left == right or (isinstance(left, float) and isinstance(right, float) and math.isclose(left, right, rel_tol=1e-9))


class TestHeader:
    @every_pack
    def test_texts_are_there_and_end_as_sentences_or_titles_do(self, pack):
        assert re.fullmatch(r"[A-Z].{5,70}[^.\s]", pack.title)
        for text in (pack.description, pack.reading):
            assert re.fullmatch(r"\S.{40,}\.", text)
        assert len(pack.empty) > 20
        for text in (*pack.columns.values(), *(param.help for param in pack.params.values())):
            assert re.fullmatch(r"\S.+[^.\s]", text), text

    @every_pack
    def test_parameters_are_those_of_the_statement(self, pack):
        used = set(re.findall(r"\$(\w+)", re.sub(r"--[^\n]*|'[^']*'", "", pack.sql)))
        assert used == set(pack.params)
        for note in pack.notes.values():
            assert set(re.findall(r"\$(\w+)", note)) <= set(pack.params)

    @every_pack
    def test_flags_are_no_other_flags(self, pack):
        app = typer.Typer()
        app.command()(flags.with_flags(lambda _, **__: None, "", *map(flags.flag_of, pack.params.values())))
        options = [option for option in typer.main.get_command(app).params if option.param_type_name == "option"]
        names = [name for option in options for name in (*option.opts, *option.secondary_opts)]
        assert {"--nvtx", "--format", *(param.flag for param in pack.params.values())} <= set(names)
        assert len(names) == len(set(names))

    @every_pack
    def test_a_choice_is_the_default_or_there_is_none(self, pack):
        for param in pack.params.values():
            assert not param.choices or param.default in param.choices

    def test_names_and_aliases_are_unique(self):
        names = [name for pack in PACKS.values() for name in (pack.name, *pack.aliases)]
        assert len(names) == len(set(names))

    @every_pack
    def test_it_reads_views_alone(self, pack):
        views = {*model.views(), "scope"}
        for question in questions(pack):
            statement, values = pack.statement(question)
            assert set(packs.tables_read(statement)) <= views
            assert "raw." not in statement
            for note in pack.notes.values():
                assert set(packs.tables_read(packs.bind(note, values))) <= {*views, "answer"}

    @every_pack
    def test_no_window_is_over_everything(self, pack):
        # DuckDB 1.5.5 fails on these now and then, for few rows of a UNION (duckdb/duckdb#25713): a subquery never does.
        for sql in (pack.sql, *pack.notes.values(), *(view.create for view in model.views().values())):
            assert "OVER ()" not in sql


class TestAnswer:
    @every_pack
    @pytest.mark.parametrize("name", ["plain", "sample", "sample with graphs", "nothing"])
    def test_columns_are_those_of_the_header_in_its_order(self, pack, ask, name):
        for _, columns, _, _ in ask(pack, name):
            assert [column.name for column in columns] == list(pack.columns)
            assert {column.type for column in columns} <= TYPES
            assert all(column.description for column in columns)

    @every_pack
    def test_types_suit_the_units(self, pack, ask):
        for _, columns, _, _ in ask(pack, "plain"):
            for column in columns:
                if units.unit_of(column.name):
                    assert column.type in {"BIGINT", "DOUBLE"}, column
                if units.unit_of(column.name) == "%":
                    assert column.type == "DOUBLE", column

    @every_pack
    @pytest.mark.parametrize("name", ["plain", "sample", "sample with graphs"])
    def test_notes_are_sentences(self, pack, ask, name):
        for _, _, _, notes in ask(pack, name):
            assert all(re.fullmatch(r"\S.{15,}[^.\s]", note) for note in notes), notes

    @every_pack
    @pytest.mark.parametrize("name", ["nothing", "calls only", "kernels only"])
    def test_it_runs_on_a_trace_with_next_to_nothing(self, pack, ask, name):
        for _, _, rows, notes in ask(pack, name):
            if name == "nothing" and pack.name != "info":
                assert rows == []
                assert notes == ()

    @every_pack
    def test_it_is_a_select_and_a_method(self, pack, traces):
        question = questions(pack)[0]
        statement, _ = pack.statement(question)
        assert [parsed.type for parsed in duckdb.extract_statements(statement)] == [duckdb.StatementType.SELECT]
        frame = getattr(traces("plain"), pack.name.replace("-", "_"))(**question)
        assert frame.rows() == traces("plain").answer(pack.name, **question).rows()


class TestSameAnswer:
    @every_pack
    @pytest.mark.parametrize(
        ("left", "right"),
        [
            ("plain", "shuffled"),
            ("plain", "shuffled otherwise"),
            ("sample", "sample, shuffled"),
            ("sample with graphs", "sample with graphs, shuffled"),
        ],
    )
    def test_whatever_the_order_of_rows(self, pack, ask, left, right):
        assert_same(ask(pack, left), ask(pack, right))

    @every_pack
    @pytest.mark.parametrize("flag", SCOPES)
    def test_in_every_scope_whatever_the_order_of_rows(self, pack, ask, flag):
        assert_same(ask(pack, "plain", flag), ask(pack, "shuffled", flag))

    @every_pack
    def test_whether_empty_tables_are_there_or_not(self, pack, ask):
        assert_same(ask(pack, "plain"), ask(pack, "with empty tables"))

    @every_pack
    def test_whether_a_column_is_missing_or_null(self, pack, ask):
        assert_same(ask(pack, "NULL columns"), ask(pack, "missing columns"))

    @every_pack
    @pytest.mark.parametrize("version", ["2023.4", "2022.2"])
    def test_whichever_nsys_exported_it(self, pack, ask, version):
        def told(name):
            # Versions differ in what they say about themselves.
            return [(p, c, [row for row in rows if row[0] not in ("capture", "missing")], n) for p, c, rows, n in ask(pack, name)]

        assert_same(told("2025.3"), told(version))

    @every_pack
    def test_from_the_file_from_the_cache_and_copied_cell_by_cell(self, pack, ask, traces):
        assert_same(ask(pack, "plain"), ask(pack, "plain", use_cache=True))
        assert traces("plain", use_cache=True)._session._cached_file
        with without_extension():
            assert_same(ask(pack, "plain"), ask(pack, "with empty tables", use_cache=None))
        assert not traces("with empty tables", use_cache=None)._session._cached_file
