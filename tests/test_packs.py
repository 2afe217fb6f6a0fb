"""The rules for all packs. They apply to every `.sql` file that is added to `queries`."""

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

PACKS = library.built_in_packs()
TYPES = {"BIGINT", "INTEGER", "DOUBLE", "VARCHAR", "BOOLEAN"}
EXAMPLES = {int: 3, float: 0.5, str: "norm"}
# The first three have all flags. By default only the first one is tested.
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


def some_packs(first, step):
    """Test every nth report, from the first, second, … one; `--all` tests the others too."""
    return pytest.mark.parametrize(
        "pack",
        [
            pytest.param(pack, id=name, marks=() if index % step == first else pytest.mark.sweep)
            for index, (name, pack) in enumerate(PACKS.items())
        ],
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return many_traces.write_all(tmp_path_factory.mktemp("traces"))


@pytest.fixture(scope="module")
def traces(files):
    """Return a function that opens these files, in a scope or not, each at its first use."""
    open_traces = {}

    def open_once(name, scope=None, *, use_cache=False):
        key = (name, scope, use_cache)
        if key not in open_traces:
            trace = nsys_insight.open(files[name], use_cache=use_cache)
            open_traces[key] = trace.scope(**SCOPES[scope]) if scope else trace
        return open_traces[key]

    yield open_once
    for trace in open_traces.values():
        trace.close()


@pytest.fixture(scope="module")
def ask(traces, request):
    """Return a function that gives a pack's answers to its questions about a file, in order, with their notes.

    There are two questions by default. With `--all` there is one for each branch in the SQL.
    """
    answers = {}

    def ask_once(pack, *file_and_scope, make_questions=list_default_questions, **options):
        if request.config.getoption("--all") and make_questions is not list_questions:
            make_questions = list_choices

        def answer(question):
            key = (pack.name, *file_and_scope, *options.items(), *question.items())
            if key not in answers:
                answer = traces(*file_and_scope, **options).answer(pack.name, **question)
                answers[key] = (answer.params, answer.columns, answer.rows(), answer.notes)
            return answers[key]

        return list(map(answer, make_questions(pack)))

    return ask_once


@contextmanager
def without_extension():
    """Let DuckDB's SQLite extension be missing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extension, "find_scanner", lambda: None)
        yield


def example_value(param):
    """Return a value for a parameter. For a pattern it is a list of numbers."""
    return ",".join("3" * (param.pattern.count(",") + 1)) if param.pattern else EXAMPLES[param.kind]


def list_plain_question(_):
    """Return the question without flags."""
    return [{}]


def list_choices(pack):
    """List the questions that select different branches: without flags, and with every choice."""
    values = [(param, value) for param in pack.params.values() for value in param.choices if value != param.default]
    values += [(param, not param.default) for param in pack.params.values() if param.kind is bool]
    return [{}, *({param.name: value} for param, value in values)]


def list_default_questions(pack):
    """List two questions: without flags, and with another choice for all parameters at once."""
    values = {
        param.name: next(value for value in reversed(param.choices) if value != param.default)
        for param in pack.params.values() if param.choices
    }  # fmt: skip
    values |= {param.name: not param.default for param in pack.params.values() if param.kind is bool}
    return [{}, values] if values else [{}]


def list_questions(pack):
    """List all questions: those by choice, and with an example of every other parameter."""
    free_params = [param for param in pack.params.values() if param.kind is not bool and not param.choices]
    return [*list_choices(pack), *({param.name: example_value(param)} for param in free_params)]


def drop_capture_rows(answers):
    """Drop the rows of `info` about the capture itself."""
    return [(p, c, [row for row in rows if row[0] not in ("capture", "missing")], n) for p, c, rows, n in answers]


def assert_same(left, right):
    """Compare answers with ordered rows. Sums of floats may differ in the last digits by the order of adding."""
    for (params, columns, rows, notes), (_, other_columns, other_rows, other_notes) in zip(left, right, strict=True):
        assert columns == other_columns
        assert len(rows) == len(other_rows), params
        for row, other in zip(rows, other_rows, strict=True):
            assert [pair for pair in zip(row, other, strict=True) if not same_cell(*pair)] == [], params
        assert notes == other_notes, params


def same_cell(left, right):
    return left == right or (
        isinstance(left, float) and isinstance(right, float) and math.isclose(left, right, rel_tol=1e-9)
    )


class TestHeader:
    def test_texts_exist_and_end_as_sentences_or_titles(self):
        for pack in PACKS.values():
            assert re.fullmatch(r"[A-Z].{5,70}[^.\s]", pack.title), pack.name
            for text in (pack.description, pack.reading):
                assert re.fullmatch(r"\S.{40,}\.", text), pack.name
            assert len(pack.empty) > 20, pack.name
            for text in (*pack.columns.values(), *(param.help for param in pack.params.values())):
                assert re.fullmatch(r"\S.+[^.\s]", text), text

    def test_it_is_a_select(self):
        for pack in PACKS.values():
            statement, _ = pack.statement({})
            assert [parsed.type for parsed in duckdb.extract_statements(statement)] == [duckdb.StatementType.SELECT]

    def test_details_are_columns(self):
        for pack in PACKS.values():
            assert set(pack.details) < set(pack.columns), pack.name

    def test_parameters_are_those_of_the_statement(self):
        for pack in PACKS.values():
            names_used = set(re.findall(r"\$(\w+)", re.sub(r"--[^\n]*|'[^']*'", "", pack.sql)))
            assert names_used == {name for name, param in pack.params.items() if not param.report}, pack.name
            for note in pack.notes.values():
                assert set(re.findall(r"\$(\w+)", note.query)) <= set(pack.params), pack.name

    def test_flags_do_not_collide_with_other_flags(self):
        for pack in PACKS.values():
            app = typer.Typer()
            app.command()(
                flags.make_command(lambda _, **__: None, "", *map(flags.make_param_flag, pack.params.values()))
            )
            options = [option for option in typer.main.get_command(app).params if option.param_type_name == "option"]
            names = [name for option in options for name in (*option.opts, *option.secondary_opts)]
            assert {"--nvtx", "--format", *(param.flag for param in pack.params.values())} <= set(names), pack.name
            assert len(names) == len(set(names)), pack.name

    def test_the_default_is_one_of_the_choices(self):
        for pack in PACKS.values():
            for param in pack.params.values():
                assert not param.choices or param.default in param.choices, (pack.name, param.name)

    def test_names_and_aliases_are_unique(self):
        names = [name for pack in PACKS.values() for name in (pack.name, *pack.aliases)]
        assert len(names) == len(set(names))

    def test_its_notes_read_only_views(self):
        """`packs check` says this of its query: `test_user_packs.py` checks all reports."""
        allowed_names = {*views.documented_views(), "scope", "answer"}
        for pack in PACKS.values():
            _, values = pack.statement({})
            for note in pack.notes.values():
                assert set(names.list_tables_read(parameters.bind(note.query, values))) <= allowed_names, pack.name

    def test_no_window_function_spans_all_rows(self):
        # DuckDB 1.5.5 sometimes fails on these, over few rows of a UNION (duckdb#25713). A scalar subquery works.
        queries = [sql for pack in PACKS.values() for sql in (pack.sql, *(note.query for note in pack.notes.values()))]
        for sql in (*queries, *(view.create for view in views.documented_views().values())):
            assert "OVER ()" not in sql


class TestAnswer:
    @every_pack
    @pytest.mark.parametrize(
        ("name", "make_questions"),
        [
            ("plain", list_default_questions),  # `packs check` describes the query of each choice
            ("nothing", list_plain_question),
            *sweep(
                [
                    ("plain", list_questions),
                    ("sample", list_default_questions),
                    ("sample with graphs", list_default_questions),
                ]
            ),
        ],
    )
    def test_columns_are_those_of_the_header_in_its_order(self, pack, ask, name, make_questions):
        for _, columns, _, _ in ask(pack, name, make_questions=make_questions):
            assert [column.name for column in columns] == list(pack.columns)
            assert {column.type for column in columns} <= TYPES
            assert all(column.description for column in columns)

    @every_pack
    def test_types_fit_the_units(self, pack, ask):
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
    def test_it_runs_on_a_nearly_empty_trace(self, pack, ask, name):
        for _, _, rows, notes in ask(pack, name, make_questions=list_plain_question):
            if name == "nothing" and pack.name != "info":
                assert rows == []
                assert notes == ()

    @some_packs(1, step=3)
    def test_it_is_a_method(self, pack, ask, traces):
        frame = getattr(traces("plain"), pack.name.replace("-", "_"))()
        ((_, _, rows, _),) = ask(pack, "plain", make_questions=list_plain_question)
        assert frame.rows() == rows


class TestSameAnswer:
    @some_packs(0, step=3)
    @pytest.mark.parametrize(
        ("left", "right"),
        [
            ("plain", "shuffled"),
            *sweep([("sample", "sample, shuffled"), ("sample with graphs", "sample with graphs, shuffled")]),
        ],
    )
    def test_from_the_cache_and_for_any_order_of_rows(self, pack, ask, traces, left, right):
        assert_same(ask(pack, left), ask(pack, right, use_cache=True))
        assert traces(right, use_cache=True)._connection.files._strategies.cached

    @some_packs(1, step=3)
    @pytest.mark.parametrize("flag", ["nvtx", *sweep(name for name in SCOPES if name != "nvtx")])
    def test_in_every_scope_for_any_order_of_rows(self, pack, ask, flag):
        assert_same(
            ask(pack, "plain", flag, make_questions=list_plain_question),
            ask(pack, "shuffled", flag, make_questions=list_plain_question),
        )

    @some_packs(2, step=3)
    @pytest.mark.parametrize(("file_name", "shift"), [*sweep([("earlier", EARLIER)]), ("later", LATER)])
    def test_copied_cell_by_cell_and_for_any_shift_in_time(self, pack, ask, traces, file_name, shift):
        times = {name for name in pack.columns if re.search("(^|_)(start|end)_ns$", name)}

        def shift_row(columns, row):
            cells = zip(columns, row, strict=True)
            return tuple(cell - shift if column.name in times and cell is not None else cell for column, cell in cells)

        with without_extension():
            answers = ask(pack, file_name, use_cache=None)
        shifted_answers = [
            (p, columns, [shift_row(columns, row) for row in rows], n) for p, columns, rows, n in answers
        ]
        assert_same(drop_capture_rows(ask(pack, "plain")), drop_capture_rows(shifted_answers))
        assert not traces(file_name, use_cache=None)._connection.files._strategies.cached

    @some_packs(3, step=6)
    def test_with_a_missing_and_with_a_null_column(self, pack, ask):
        assert_same(
            ask(pack, "NULL columns", make_questions=list_plain_question),
            ask(pack, "missing columns", make_questions=list_plain_question),
        )

    @some_packs(5, step=6)
    @pytest.mark.parametrize("version", [*sweep(["2023.4"]), "2022.2"])
    def test_for_any_version_of_nsys(self, pack, ask, version):
        newest, older = (ask(pack, name, make_questions=list_plain_question) for name in ("2025.3", version))
        assert_same(drop_capture_rows(newest), drop_capture_rows(older))
