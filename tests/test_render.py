"""Answers in all output formats: for people and for machines."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import subprocess
import sys
from dataclasses import replace

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from nsys_insight.errors import QueryError, UsageError
from nsys_insight.render import FORMATS, HUMAN_FORMATS, choose_format, write
from nsys_insight.session.answer import Answer, Column, store_result
from nsys_insight.sql.quoting import literal
from nsys_insight.text.cells import color_severities

ANSI = re.compile(r"\x1b\[[0-9;]*m")
NAME = (
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::exp_kernel_cuda(at::TensorIteratorBase &)::"
    "[lambda() (instance 2)]::operator ()() const::[lambda(float) (instance 1)], std::array<char *, (unsigned long)2>>"
    "(int, T2, T3)"
)
TOP = f"""
    SELECT * FROM (VALUES
        ({literal(NAME)}, 1640,
         2122333, 3316.1, 3040.0, 2880, 4800, 559.0, 4448, 97.5, 0.21, 'elementwise', 'PyTorch native'),
        ('nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN', 70,
         512000, 7314.3, 7000.0, 6400, 9920, NULL, 9820, 2.5, 0.004, 'gemm', 'cuBLAS'))
    AS t(name, calls,
         total_ns, avg_ns, med_ns, min_ns, max_ns, stddev_ns, p95_ns, kernel_time_pct, wall_pct, family, provenance)
"""
NUMBERS = (
    "1,640 2.122 3.32 3.04 2.88 4.80 0.56  4.45 97.5 0.21",
    "70    0.512 7.31 7.00 6.40 9.92 -     9.82  2.5 0.004",
)
ROWS = "SELECT i AS device_id, i * 1000 AS total_ns FROM range(214) AS t(i) ORDER BY i DESC"


@pytest.fixture(scope="module")
def connection():
    with duckdb.connect() as connection:
        yield connection


@pytest.fixture
def answer(connection):
    def make(select, **fields):
        columns = tuple(Column(name, kind) for name, kind in store_result(connection, "answer_1", select))
        return Answer(connection, "answer_1", columns, "top", **{"title": "Kernels by GPU time", **fields})

    return make


def render(answer, fmt, **options):
    stream = io.StringIO(newline="")
    write(answer, stream, fmt, **options)
    return stream.getvalue()


def render_table(answer, **options):
    return render(answer, "table", **options)


# The table


def test_a_table_names_one_unit_per_column_and_aligns_decimal_points(answer):
    select = (
        "SELECT * FROM (VALUES ('a', 2122333, 41.2), ('b', 5000000, 0.004), ('c', NULL, 0)) t(name, total_ns, wall_pct)"
    )
    assert render_table(answer(select)) == (
        "Kernels by GPU time\n"
        "\n"
        "name  total (ms)  % of wall\n"
        "───────────────────────────\n"
        "a           2.12     41.20\n"
        "b           5.00      0.004\n"
        "c           -         0\n"
        "\n"
        "3 rows\n"
    )


def test_statistics_of_one_quantity_are_in_one_unit(answer):
    select = "SELECT 33161.0 AS avg_ns, 2e6 AS max_ns, 559.0 AS stddev_ns, 4e6 AS total_ns,"
    select += " 7e3 AS queue_avg_ns, 900 AS queue_max_ns"
    assert "avg (ms)  max (ms)  stddev (ms)  total (ms)  queue avg (µs)  queue max (µs)" in render_table(answer(select))


def test_a_share_names_its_total_in_the_header(answer):
    shares = answer(
        "SELECT 'a' AS name, 10.0 AS api_time_pct, 2.0 AS gpu_idle_wall_pct, 5.0 AS path_pct"
        " UNION ALL SELECT 'b', 1, 1, 1"
    )
    renamed = replace(shares, columns=(*shares.columns[:3], replace(shares.columns[3], share_of="the step")))
    lines = render_table(renamed).splitlines()
    assert lines[2].split("  ") == ["name", "% of API time", "gpu idle % of wall", "path %"]
    assert lines[-1] == "path: % of the step"


def test_severity_has_a_color_and_a_word(answer):
    verdicts = answer("SELECT 'broken' AS verdict, 'x' AS name UNION ALL SELECT 'ok', 'broken'")
    stream = io.StringIO()
    write(verdicts, stream, "table", color=True)
    assert "\x1b[1;31mbroken\x1b[0m" in stream.getvalue()
    assert "\x1b[32mok" in stream.getvalue()
    assert stream.getvalue().count("\x1b[1;31m") == 1  # a name may have the same text
    text = "1. CRITICAL The GPU waits\n   evidence: CRITICAL\n2. INFO more\n"
    assert color_severities(text) == (
        "1. \x1b[1;31mCRITICAL\x1b[0m The GPU waits\n   evidence: CRITICAL\n2. \x1b[36mINFO\x1b[0m more\n"
    )
    assert "\x1b" not in render_table(verdicts)


def test_a_deviation_has_the_unit_of_its_mean_and_a_count_has_no_decimals(answer):
    assert render_table(answer("SELECT 3316.1 AS avg_ns, 559.0 AS stddev_ns")).splitlines()[2:5] == [
        "avg (µs)  stddev (µs)", "─────────────────────", "    3.32         0.56",
    ]  # fmt: skip
    select = "SELECT 'mallocs' AS metric, 1::BIGINT AS total, 0.03125::DOUBLE AS per_token"
    assert render_table(answer(select)).splitlines()[4].split() == ["mallocs", "1", "0.031"]


def test_a_narrow_table_hides_details_and_says_so(answer):
    wide = answer(TOP)
    wide = replace(wide, columns=tuple(replace(c, is_detail=c.name in ("min_ns", "family")) for c in wide.columns))
    assert "min" in render_table(wide).splitlines()[2] + render_table(wide).splitlines()[3]
    narrow = render_table(wide, width=80)
    hidden = "More columns: min, family (--wide)"
    assert narrow.splitlines()[-2:] == ["2 rows", hidden]
    assert "gemm" not in narrow
    assert "provenance" in narrow
    assert "min_ns" in render(wide, "csv", width=80)


MAIN_COLUMNS = ("name", "total_ns", "kernel_time_pct", "calls", "avg_ns", "family")


def answer_with_positions(answer, select=TOP):
    full_answer = answer(select)
    positions = {name: index for index, name in enumerate(MAIN_COLUMNS)}
    return replace(
        full_answer,
        columns=tuple(replace(column, position=positions.get(column.name)) for column in full_answer.columns),
    )


@pytest.mark.parametrize(("width", "min_columns"), [(50, 3), (60, 4), (80, 6), (100, 6)])
def test_a_row_is_one_line_with_the_most_important_columns_that_fit(answer, width, min_columns):
    lines = render_table(answer_with_positions(answer), width=width).splitlines()
    heading = " ".join(lines[2 : next(index for index, line in enumerate(lines) if line.startswith("─"))]).split()
    labels = ["name", "total", "time", "calls", "avg", "family"]
    is_shown = [label in heading for label in labels]
    assert is_shown == sorted(is_shown, reverse=True)  # the last columns are hidden first
    assert sum(is_shown) >= min_columns
    assert max(map(cell_len, lines)) <= width
    rows = lines[lines.index(next(line for line in lines if line.startswith("─"))) + 1 :]
    assert rows[2] == ""  # two rows are two lines
    assert "More columns: " in " ".join(lines)


def test_a_table_has_important_columns_first_and_other_formats_keep_the_order_of_the_query(answer):
    header = render_table(answer_with_positions(answer), width=200).splitlines()[4].split()
    assert header[:2] == ["(ms)", "time"]
    assert header[-1] == "name"  # it takes the width that is left
    assert render(answer_with_positions(answer), "csv").startswith("name,calls,total_ns,avg_ns,med_ns")


def test_wide_hides_no_column(answer):
    text = render_table(answer_with_positions(answer), width=80, wide=True)
    assert "hidden" not in text
    assert set(" ".join(NUMBERS).split()) <= set(text.split())


def test_a_single_row_that_does_not_fit_is_a_list_of_names_and_values(answer):
    one_row = answer_with_positions(answer, f"SELECT * FROM ({TOP}) WHERE calls = 70")
    lines = render_table(one_row, width=80).splitlines()
    assert "total        512.0 µs" in lines
    assert "kernel time  2.5% of kernel time" in lines
    assert "stddev       -" in lines
    assert "hidden" not in "".join(lines)
    assert render_table(one_row, width=300).splitlines()[2].endswith("  name")


def test_a_single_row_has_one_line_for_a_value_and_its_share(answer):
    columns = "1970000 AS saving_low_ns, 73.5 AS saving_low_wall_pct, " + ", ".join(
        f"'x' AS a_long_word_{i}" for i in range(9)
    )
    lines = render_table(
        answer(f"SELECT {columns}".replace("saving_low_wall_pct", "saving_low_pct")), width=80
    ).splitlines()
    assert "saving low     1.97 ms (73.5%)" in lines


def test_metrics_that_are_zero_are_folded_and_counted(answer):
    values = "('wall_ns', 2680000, 1.5), ('idle_copy_ns', 0, NULL), ('idle_sync_ns', 13300, 2), ('frees', 0, 0)"
    metrics = answer(f"SELECT * FROM (VALUES {values}) t(metric, per_token, share)")
    lines = render_table(metrics).splitlines()
    assert [line.split("  ")[0] for line in lines[4:6]] == ["wall", "idle sync"]
    assert lines[-1] == "4 rows; 2 of them, all zeros, are hidden (--wide)"
    assert "frees" in render_table(metrics, wide=True)
    assert "frees" in render(metrics, "markdown")


def test_all_times_of_metrics_are_in_one_unit(answer):
    values = "('wall_ns', 2680000), ('busy_ns', 366000), ('sync_ns', 13300), ('edge_ns', 253), ('h2d_bytes', 8)"
    lines = render_table(answer(f"SELECT * FROM (VALUES {values}) t(metric, per_token)")).splitlines()
    assert [line.split()[-2:] for line in lines[4:9]] == [
        ["2,680", "µs"],
        ["366", "µs"],
        ["13.3", "µs"],
        ["0.253", "µs"],
        ["8", "B"],
    ]


def test_names_and_places_shrink_before_one_of_them_is_hidden(answer):
    select = f"SELECT 240200 AS idle_ns, 32 AS calls, {literal('decode_step/layer_# ' * 2)} AS nvtx_path,"
    select += f" {literal(NAME)} AS name, 7.2 AS share_pct, 3 AS gaps UNION ALL SELECT 1, 1, 'a', 'b', 1, 1"
    positions = {"idle_ns": 0, "calls": 1, "nvtx_path": 2, "name": 3, "share_pct": 4, "gaps": 5}
    plain = answer(select)
    with_positions = replace(plain, columns=tuple(replace(c, position=positions[c.name]) for c in plain.columns))
    header = render_table(with_positions, width=60).split("─")[0]
    assert "nvtx path" in header
    assert "name" in header
    assert "gaps" not in header


def test_columns_are_chosen_by_name_in_every_format(answer):
    selection = answer_with_positions(answer).select_columns(["calls", "name"])
    assert render(selection, "csv").splitlines()[0] == "calls,name"
    assert render_table(selection, width=80).splitlines()[2].split() == ["calls", "name"]
    with pytest.raises(UsageError, match="no column 'call'") as error:
        answer_with_positions(answer).select_columns(["call"])
    assert "did you mean calls?" in error.value.hint


@pytest.mark.parametrize("width", [60, 80, 100, 120, 160, 200])
def test_a_table_fits_its_width_and_shortens_no_number_or_header(answer, width):
    text = render_table(answer(TOP), width=width)
    assert max(map(cell_len, text.splitlines())) <= width
    assert set(" ".join(NUMBERS).split()) <= set(text.split())
    words = "name calls total avg med min max stddev p95 kernel time wall family provenance"
    assert set(words.split()) <= set(text.split("─")[0].split())
    assert "exp_kernel_cuda" in text
    assert "bz_TNN" in text


def test_rows_of_a_narrow_table_take_several_lines_and_so_do_headers(answer):
    select = "SELECT name, calls, total_ns, avg_ns, min_ns, max_ns, kernel_time_pct, family FROM (" + TOP + ")"
    assert render_table(answer(select), width=60).splitlines()[2:-2] == [
        "name                                             family",
        "                                      % of",
        "           total   avg   min   max  kernel",
        "    calls   (ms)  (µs)  (µs)  (µs)    time",
        "─" * 60,
        "vectorized_elementwise_kernel<…exp_kernel_cuda>  elementwise",
        "    1,640  2.122  3.32  2.88  4.80    97.5",
        "nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN           gemm",
        "       70  0.512  7.31  6.40  9.92     2.5",
    ]


def test_without_a_width_nothing_is_shortened(answer):
    lines = render_table(answer(TOP)).splitlines()
    assert len(lines) == 2 + 2 + 2 + 2
    assert "vectorized_elementwise_kernel<4, exp_kernel_cuda::lambda#2::lambda(float), array<char*, 2>>" in lines[4]


def test_full_names_are_those_of_the_trace_at_any_width(answer):
    assert NAME in render_table(answer(TOP), width=80, full_names=True)
    assert NAME in render(answer(TOP), "markdown", full_names=True)


def test_sentences_are_wrapped_and_never_shortened(answer):
    advice = "Capture the step in a CUDA graph, or fuse the small kernels; see nsys-insight fusion for candidates."
    text = render_table(answer(f"SELECT 'launch-bound' AS bound, 0.91 AS ratio, {literal(advice)} AS advice"), width=60)
    header, *rows = (line for line in text.splitlines()[2:-2] if "─" not in line)
    start = header.index("advice")
    assert len(rows) > 1
    assert " ".join(row[start:] for row in rows) == advice


def test_the_footer_counts_the_shown_rows(answer):
    assert render_table(answer(ROWS), limit=20).endswith("\n20 of 214 rows (--limit 0 for all)\n")
    assert render_table(answer(ROWS), limit=214).endswith("\n214 rows\n")
    assert render_table(answer("SELECT 1 AS calls"), limit=20).endswith("\n1 row\n")
    assert render(answer(ROWS), "markdown", limit=20).endswith("\n20 of 214 rows (--limit 0 for all)\n")


def test_an_empty_answer_explains_why(answer):
    nothing = "SELECT 'x' AS name WHERE false"
    assert render_table(answer(nothing, empty="No kernels ran:\ncapture with -t cuda")) == (
        "Kernels by GPU time\n\nNo kernels ran: capture with -t cuda\n"
    )
    assert render_table(answer(nothing, title="")) == "no rows\n"


def test_each_metric_has_its_own_unit(answer):
    select = """SELECT * FROM (VALUES
        ('gpu_busy_ns', 1930000::DOUBLE, 2100000::DOUBLE, 8.8),
        ('h2d_bytes', 4096, NULL, NULL),
        ('launch_calls', 12345, 0, -100.0),
        ('idle_pct', 41.2, 0.004, -99.9),
        ('h2d_bytes_per_s', 24e9, 25.1e9, 4.6)) t(metric, before, after, change_pct)"""
    lines = render_table(answer(select)).splitlines()[2:-2]
    assert [re.split(r"\s{2,}", line) for line in lines] == [
        ["metric", "before", "after", "change %"],
        ["─" * len(lines[1])],
        ["gpu busy", "1.93 ms", "2.10 ms", "8.8"],
        ["h2d", "4.00 KiB", "-", "-"],
        ["launch calls", "12,345", "0", "-100.0"],
        ["idle", "41.20%", "0.004%", "-99.9"],
        ["h2d", "24.0 GB/s", "25.1 GB/s", "4.6"],
    ]
    assert "gpu_busy_ns,1930000.0,2100000.0" in render(answer(select), "csv")


def test_an_id_does_not_take_the_unit_of_the_metric(answer):
    select = "SELECT * FROM (VALUES ('busy_ns', 5, 4294967295), (NULL, 7, 3)) t(metric, value, stream_id)"
    assert [line.split() for line in render_table(answer(select)).splitlines()[4:-2]] == [
        ["busy", "5", "ns", "4294967295"],
        ["-", "7", "3"],
    ]


def test_color_is_optional_and_changes_nothing_else(answer):
    plain, colored = (render_table(answer(TOP), width=100, color=color) for color in (False, True))
    assert "\x1b" not in plain
    assert "\x1b[36m" in colored
    assert ANSI.sub("", colored) == plain


@pytest.mark.parametrize("fmt", HUMAN_FORMATS)
def test_data_cannot_control_the_terminal_or_break_the_table(answer, fmt):
    hostile = "a\x1b[2J\nb\tc\r\u202ed\x9b"
    select = f"SELECT {literal(hostile)} AS name, {literal(hostile)} AS note, 1 AS calls"
    text = render(answer(select, title=hostile, empty=hostile), fmt)
    assert all(character.isprintable() or character == "\n" for character in text)
    assert len(text.splitlines()) == len(render(answer("SELECT 'a' AS name, 1 AS calls"), fmt).splitlines())


def test_wide_characters_keep_the_columns_in_line(answer):
    lines = render_table(
        answer("SELECT * FROM (VALUES ('矩阵乘法内核', 1), ('gemm', 22)) t(name, calls)")
    ).splitlines()[2:-2]
    assert len({cell_len(line) for line in lines}) == 1


texts = st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60))
integers = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))
floats = st.one_of(st.none(), st.floats(allow_subnormal=False))
rows = st.lists(st.tuples(texts, texts, integers, floats, integers), min_size=1, max_size=4)


def select_rows(rows):
    values = ", ".join("(" + ", ".join(map(sql_literal, row)) + ")" for row in rows)
    return (
        "SELECT name::VARCHAR AS name, note::VARCHAR AS note, total_ns::BIGINT AS total_ns, avg_ns::DOUBLE AS avg_ns, "
        f"stream_id::BIGINT AS stream_id FROM (VALUES {values}) AS t(name, note, total_ns, avg_ns, stream_id)"
    )


def sql_literal(value):
    return f"'{value}'::DOUBLE" if isinstance(value, float) else literal(value)


@pytest.mark.slow
@settings(max_examples=60)
@given(rows=rows, width=st.integers(60, 200))
def test_no_line_is_wider_than_the_width_or_ends_in_spaces(connection, rows, width):
    columns = tuple(Column(name, kind) for name, kind in store_result(connection, "answer_2", select_rows(rows)))
    text = render_table(Answer(connection, "answer_2", columns, "top", "Top"), width=width)
    for line in text.split("\n"):
        assert cell_len(line) <= width
        assert line == line.rstrip(" ")
    for *_, stream_id in rows:
        assert ("-" if stream_id is None else str(stream_id)) in text.split()


# Markdown


def test_markdown_is_a_table_in_which_names_are_code(answer):
    select = "SELECT * FROM (VALUES ('f<a|b>(int)', 1234, 'a_b|c'), (NULL, 5, NULL)) t(name, calls, note)"
    assert render(answer(select, title="Top <n>"), "markdown").splitlines() == [
        r"## Top \<n\>",
        "",
        "| name | calls | note |",
        "| :--- | ---: | :--- |",
        r"| `f<a\|b>` | 1,234 | a\_b\|c |",
        "| - | 5 | - |",
        "",
        "2 rows",
    ]


# The formats for machines


def machine_rows(text, fmt):
    if fmt == "json":
        return json.loads(text)["rows"]
    if fmt == "jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_json_is_one_object_that_describes_its_columns(connection):
    store_result(connection, "answer_1", "SELECT 'a' AS name, 5::BIGINT AS total_ns")
    answer = Answer(
        connection,
        "answer_1",
        (Column("name", "VARCHAR", "The kernel"), Column("total_ns", "BIGINT", "Sum")),
        "top",
        "Kernels",
        params={"group_by": "full"},
        notes=("half of it",),
        trace={"file": "t.sqlite", "scope": {}},
    )
    assert json.loads(render(answer, "json")) == {
        "schema": "nsys-insight/1",
        "report": "top",
        "trace": {"file": "t.sqlite", "scope": {}},
        "params": {"group_by": "full"},
        "notes": ["half of it"],
        "row_count": 1,
        "columns": [
            {"name": "name", "unit": "", "description": "The kernel"},
            {"name": "total_ns", "unit": "ns", "description": "Sum"},
        ],
        "rows": [{"name": "a", "total_ns": 5}],
    }


@pytest.mark.parametrize("fmt", ["json", "jsonl", "csv"])
def test_machine_formats_are_raw_and_complete(answer, fmt):
    rows = machine_rows(render(answer(TOP), fmt, width=80), fmt)
    assert rows[0]["name"] == NAME
    assert [str(rows[0][name]) for name in ("total_ns", "avg_ns", "wall_pct")] == ["2122333", "3316.1", "0.21"]
    assert rows[1]["stddev_ns"] == ("" if fmt == "csv" else None)
    assert len(machine_rows(render(answer(ROWS), fmt), fmt)) == 214


@pytest.mark.parametrize("fmt", ["json", "jsonl", "csv"])
def test_rows_keep_the_order_of_the_answer_up_to_a_limit(answer, fmt):
    rows = machine_rows(render(answer(ROWS), fmt, limit=3), fmt)
    assert [int(row["device_id"]) for row in rows] == [213, 212, 211]


@pytest.mark.parametrize("fmt", ["json", "jsonl"])
def test_values_that_json_cannot_hold_become_null_or_text(answer, fmt):
    select = """SELECT 'nan'::DOUBLE AS a, '-inf'::DOUBLE AS b, [1.5, 'nan'::DOUBLE] AS c, {'x': 'inf'::FLOAT} AS d,
        170141183460469231731687303715884105727::HUGEINT AS e, 1.50::DECIMAL(9, 2) AS f, true AS g,
        TIMESTAMP '2024-01-02 03:04:05' AS h, '\\xFF'::BLOB AS i"""
    assert machine_rows(render(answer(select), fmt), fmt) == [
        {
            "a": None,
            "b": None,
            "c": [1.5, None],
            "d": {"x": None},
            "e": 2**127 - 1,
            "f": 1.5,
            "g": True,
            "h": "2024-01-02 03:04:05",
            "i": "ff",
        }
    ]


@pytest.mark.parametrize("fmt", ["json", "jsonl", "csv"])
def test_an_empty_answer_is_still_a_valid_file(answer, fmt):
    text = render(answer("SELECT 'x' AS name, 1 AS calls WHERE false"), fmt)
    assert machine_rows(text, fmt) == []
    assert fmt != "csv" or text == "name,calls\n"


@settings(max_examples=60)
@given(rows=rows)
def test_csv_survives_the_round_trip(connection, rows):
    columns = tuple(Column(name, kind) for name, kind in store_result(connection, "answer_2", select_rows(rows)))
    text = render(Answer(connection, "answer_2", columns, "top", "Top"), "csv")
    finite = [[None if isinstance(cell, float) and not math.isfinite(cell) else cell for cell in row] for row in rows]
    expected = [["" if cell is None else str(cell) for cell in row] for row in finite]
    assert list(csv.reader(io.StringIO(text, newline="")))[1:] == expected


# Files, pipes and terminals


@pytest.mark.parametrize("fmt", FORMATS)
def test_a_file_has_the_same_content_as_the_stream(answer, tmp_path, fmt):
    path = tmp_path / "ansicht µ.out"
    write(answer(TOP), path, fmt)
    if fmt == "parquet":
        assert pl.read_parquet(path)["total_ns"].to_list() == [2122333, 512000]
    elif fmt == "arrow":
        assert pl.read_ipc(path).equals(answer(TOP).frame())
    else:
        assert path.read_bytes().decode() == render(answer(TOP), fmt)


@pytest.mark.parametrize(("fmt", "read"), [("parquet", pl.read_parquet), ("arrow", pl.read_ipc)])
def test_binary_formats_go_to_a_pipe_but_not_to_a_terminal(answer, fmt, read):
    pipe = io.TextIOWrapper(io.BytesIO())
    write(answer(ROWS), pipe, fmt, limit=2)
    assert read(pipe.buffer.getvalue())["device_id"].to_list() == [213, 212]
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    with pytest.raises(UsageError) as caught:
        write(answer(ROWS), terminal, fmt)
    assert f"-o answer.{fmt}" in caught.value.hint


def test_a_column_that_polars_cannot_have_is_named(answer, tmp_path):
    for value, write_it in [
        ("INTERVAL 1 DAY", Answer.frame),
        ("[INTERVAL 1 DAY]", Answer.frame),
        ("union_value(a := 1)", Answer.frame),
        ("INTERVAL 1 DAY", lambda rows: write(rows, tmp_path / "out", "arrow")),
    ]:
        with pytest.raises(QueryError, match="the column 'lost'"):
            write_it(answer(f"SELECT 1 AS kept, {value} AS lost"))
    field_answer = answer("SELECT {'interval': 1} AS interval")
    assert field_answer.frame()["interval"].to_list() == [{"interval": 1}]
    write(field_answer, tmp_path / "out", "arrow")


@pytest.mark.parametrize("fmt", ["csv", "parquet"])
def test_a_file_that_cannot_be_written_is_a_usage_error_naming_it(answer, tmp_path, fmt):
    with pytest.raises(UsageError) as caught:
        write(answer(TOP), tmp_path / "missing" / "out", fmt)
    assert str(tmp_path / "missing" / "out") in caught.value.message


@pytest.mark.parametrize(
    ("name", "fmt"),
    [
        ("a.csv", "csv"),
        ("a.JSON", "json"),
        ("a.jsonl", "jsonl"),
        ("a.parquet", "parquet"),
        ("a.arrow", "arrow"),
        ("a.b.md", "markdown"),
        ("a.txt", "table"),
    ],
)
def test_the_suffix_of_a_file_sets_its_format(tmp_path, name, fmt):
    assert choose_format(tmp_path / name) == fmt


def test_an_unknown_suffix_is_a_usage_error_that_lists_known_ones(tmp_path):
    with pytest.raises(UsageError) as caught:
        choose_format(tmp_path / "a.xlsx")
    assert ".parquet" in caught.value.hint


@pytest.mark.parametrize("fmt", ["csv", "json", "jsonl", "table"])
def test_only_color_and_wide_characters_need_rich_and_nothing_needs_polars(fmt):
    script = f"""
import duckdb, io, sys
from nsys_insight.session.answer import Answer, Column, store_result
from nsys_insight.render import write
connection = duckdb.connect()
types = store_result(connection, "t", "SELECT 'f<int>' AS name, 5000 AS total_ns")
columns = tuple(Column(*name_and_type) for name_and_type in types)
write(Answer(connection, "t", columns, "top", "Top"), io.StringIO(), {fmt!r}, width=80)
print(*sorted({{"rich", "polars", "numpy", "pyarrow"}} & set(sys.modules)))
"""
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []
