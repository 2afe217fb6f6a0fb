"""What every pack promises, whatever its question: each `.sql` file in `queries` is held to it when it is added."""

from __future__ import annotations

import math
import re
from contextlib import contextmanager

import duckdb
import many_traces
import pytest
import typer
from many_traces import EARLIER, LATER
from sweeps import sweep

import nsys_insight
from nsys_insight.cli import flags
from nsys_insight.ingest import extension
from nsys_insight.model import views
from nsys_insight.packs import library
from nsys_insight.sql import names, parameters
from nsys_insight.text import units

PACKS = library.built_in()
TYPES = {"BIGINT", "INTEGER", "DOUBLE", "VARCHAR", "BOOLEAN"}
EXAMPLES = {int: 3, float: 0.5, str: "norm"}
# The first three have all of the flags, and the first one alone is asked by default.
SCOPES = {
    "nvtx": {"nvtx": "step"},
    "window": {"from_ns": 100_000, "to_ns": 400_000},
    "place": {"device": 1, "process": 200, "stream": 13},
    "from": {"from_ns": 300_000},
    "to": {"to_ns": 300_000},
    "device": {"device": 1},
    "process": {"process": 200},
    "stream": {"stream": 13},
}

every_pack = pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS.keys())


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return many_traces.write(tmp_path_factory.mktemp("traces"))


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
def ask(traces, request):
    """Give a pack's answers to its questions about a file, in their order, with the notes beside them.

    They are two, unless told otherwise, and by `--all` those that take another way through the SQL.
    """
    known = {}

    def ask_once(pack, *place, asked=two, **options):
        if request.config.getoption("--all") and asked is not questions:
            asked = choices

        def answer(question):
            key = (pack.name, *place, *options.items(), *question.items())
            if key not in known:
                answer = traces(*place, **options).answer(pack.name, **question)
                known[key] = (answer.params, answer.columns, answer.rows(), answer.notes)
            return known[key]

        return list(map(answer, asked(pack)))

    return ask_once


@contextmanager
def without_extension():
    """Have DuckDB's SQLite extension not be there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extension, "scanner", lambda: None)
        yield


def example(param):
    """Give a value for a parameter; one that must match a pattern is a list of numbers."""
    return ",".join("3" * (param.pattern.count(",") + 1)) if param.pattern else EXAMPLES[param.kind]


def as_it_is(_):
    """Give the way to ask a pack without flags."""
    return [{}]


def choices(pack):
    """Give the ways to ask a pack that differ by more than a number: as it is, and with every choice."""
    chosen = [(param, value) for param in pack.params.values() for value in param.choices if value != param.default]
    chosen += [(param, not param.default) for param in pack.params.values() if param.kind is bool]
    return [{}, *({param.name: value} for param, value in chosen)]


def two(pack):
    """Give two ways to ask a pack: as it is, and with another choice of everything at once."""
    chosen = {
        param.name: next(value for value in reversed(param.choices) if value != param.default)
        for param in pack.params.values() if param.choices
    }  # fmt: skip
    chosen |= {param.name: not param.default for param in pack.params.values() if param.kind is bool}
    return [{}, chosen] if chosen else [{}]


def questions(pack):
    """Give the ways to ask a pack: those by choice, and with an example of every other parameter."""
    others = [param for param in pack.params.values() if param.kind is not bool and not param.choices]
    return [*choices(pack), *({param.name: example(param)} for param in others)]


def about_events(answers):
    """Leave out of `info` what a trace says about its own capture."""
    return [(p, c, [row for row in rows if row[0] not in ("capture", "missing")], n) for p, c, rows, n in answers]


def assert_same(left, right):
    """Compare answers, rows in their order; sums of floats may differ in the last digits with the order of adding."""
    for (params, columns, rows, notes), (_, other_columns, other_rows, other_notes) in zip(left, right, strict=True):
        assert columns == other_columns
        assert len(rows) == len(other_rows), params
        for row, other in zip(rows, other_rows, strict=True):
            assert all(map(same_cell, row, other)), (params, row, other)
        assert notes == other_notes, params


def same_cell(left, right):
    return left == right or (
        isinstance(left, float) and isinstance(right, float) and math.isclose(left, right, rel_tol=1e-9)
    )


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
    def test_details_are_columns(self, pack):
        assert set(pack.details) < set(pack.columns)

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
        known = {*views.documented(), "scope"}
        for question in questions(pack):
            statement, values = pack.statement(question)
            assert set(names.tables_read(statement)) <= known
            assert "raw." not in statement
            for note in pack.notes.values():
                assert set(names.tables_read(parameters.bind(note, values))) <= {*known, "answer"}

    @every_pack
    def test_no_window_is_over_everything(self, pack):
        # DuckDB 1.5.5 fails on these now and then, over few rows of a UNION (duckdb#25713); a scalar subquery does not.
        for sql in (pack.sql, *pack.notes.values(), *(view.create for view in views.documented().values())):
            assert "OVER ()" not in sql


class TestAnswer:
    @every_pack
    @pytest.mark.parametrize(
        ("name", "asked"),
        [("plain", questions), ("nothing", as_it_is), *sweep([("sample", two), ("sample with graphs", two)])],
    )
    def test_columns_are_those_of_the_header_in_its_order(self, pack, ask, name, asked):
        for _, columns, _, _ in ask(pack, name, asked=asked):
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
    @pytest.mark.parametrize("name", ["plain", *sweep(["sample", "sample with graphs"])])
    def test_notes_are_sentences(self, pack, ask, name):
        for _, _, _, notes in ask(pack, name):
            assert all(re.fullmatch(r"\S.{15,}[^.\s]", note) for note in notes), notes

    @every_pack
    @pytest.mark.parametrize(
        "name", ["nothing", "kernels only", *sweep(["calls only", "a wait in a reset", "GPUs of 2020"])]
    )
    def test_it_runs_on_a_trace_with_next_to_nothing(self, pack, ask, name):
        for _, _, rows, notes in ask(pack, name, asked=as_it_is):
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
            *sweep([("sample", "sample, shuffled"), ("sample with graphs", "sample with graphs, shuffled")]),
        ],
    )
    def test_whatever_the_order_of_rows(self, pack, ask, left, right):
        assert_same(ask(pack, left), ask(pack, right))

    @every_pack
    @pytest.mark.parametrize("flag", ["nvtx", *sweep(name for name in SCOPES if name != "nvtx")])
    def test_in_every_scope_whatever_the_order_of_rows(self, pack, ask, flag):
        assert_same(ask(pack, "plain", flag, asked=as_it_is), ask(pack, "shuffled", flag, asked=as_it_is))

    @every_pack
    @pytest.mark.parametrize(("when", "shift"), [*sweep([("earlier", EARLIER)]), ("later", LATER)])
    def test_whenever_it_happened(self, pack, ask, when, shift):
        times = {name for name in pack.columns if re.search("(^|_)(start|end)_ns$", name)}

        def moved(columns, row):
            cells = zip(columns, row, strict=True)
            return tuple(cell - shift if column.name in times and cell is not None else cell for column, cell in cells)

        shifted = [(p, columns, [moved(columns, row) for row in rows], n) for p, columns, rows, n in ask(pack, when)]
        assert_same(about_events(ask(pack, "plain")), about_events(shifted))

    @pytest.mark.sweep  # the later trace has them too, and so has the one that is copied cell by cell
    @every_pack
    def test_whether_empty_tables_are_there_or_not(self, pack, ask):
        assert_same(ask(pack, "plain"), ask(pack, "with empty tables"))

    @every_pack
    def test_whether_a_column_is_missing_or_null(self, pack, ask):
        assert_same(ask(pack, "NULL columns", asked=as_it_is), ask(pack, "missing columns", asked=as_it_is))

    @every_pack
    @pytest.mark.parametrize("version", [*sweep(["2023.4"]), "2022.2"])
    def test_whichever_nsys_exported_it(self, pack, ask, version):
        newest, older = (ask(pack, name, asked=as_it_is) for name in ("2025.3", version))
        assert_same(about_events(newest), about_events(older))

    @every_pack
    def test_from_the_file_from_the_cache_and_copied_cell_by_cell(self, pack, ask, traces):
        plain = ask(pack, "plain", asked=as_it_is)
        assert_same(plain, ask(pack, "plain", asked=as_it_is, use_cache=True))
        assert traces("plain", use_cache=True)._connection._files._strategies.cached
        with without_extension():
            assert_same(plain, ask(pack, "with empty tables", asked=as_it_is, use_cache=None))
        assert not traces("with empty tables", use_cache=None)._connection._files._strategies.cached
