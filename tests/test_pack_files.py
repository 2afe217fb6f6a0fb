"""A pack is a file: its header becomes a command, its `$names` become values."""

from __future__ import annotations

import duckdb
import our_sql
import pytest

from nsys_insight.errors import UsageError
from nsys_insight.model.views import views_read
from nsys_insight.packs import library
from nsys_insight.packs.pack import parse_pack
from nsys_insight.sql import headers, names, parameters

HEADER = '''/*
title = "Things"
description = """
Counts
things."""
reading = "Read it."
empty = "Nothing."
[params.least]
default = 3
help = "at least"
[params.min_gap_ns]
type = "integer"
help = "shortest gap"
[params.by]
default = "name"
choices = ["name", "size"]
help = "what a row is"
[columns]
name = "Its name"
*/
'''


@pytest.fixture
def pack(tmp_path):
    (tmp_path / "things.sql").write_text(HEADER + "SELECT $least, $min_gap_ns, $by;\n", encoding="utf-8")
    return parse_pack(tmp_path / "things.sql")


def test_the_header_is_read(pack):
    assert (pack.name, pack.title, pack.description) == ("things", "Things", "Counts things.")
    assert pack.columns == {"name": "Its name"}
    assert [(p.flag, p.kind, p.default) for p in pack.params.values()] == [
        ("--least", int, 3),
        ("--min-gap", int, None),
        ("--by", str, "name"),
    ]


def test_values_are_written_into_the_statement_as_literals(pack):
    statement, values = pack.statement({"by": "size", "min_gap_ns": "5us"})
    assert statement == "SELECT 3, 5000, 'size'"
    assert values == {"least": 3, "min_gap_ns": 5000, "by": "size"}


@pytest.mark.parametrize("values", [{"leats": 1}, {"least": "many"}, {"by": "colour"}, {"min_gap_ns": "soon"}])
def test_a_wrong_parameter_is_a_usage_error_with_a_hint(pack, values):
    with pytest.raises(UsageError):
        pack.statement(values)


@pytest.mark.parametrize(
    ("sql", "bound"),
    [
        ("SELECT $a", "SELECT 'it''s'"),
        ("SELECT '$a', \"$a\" -- $a\n, $a /* $a */", "SELECT '$a', \"$a\" -- $a\n, 'it''s' /* $a */"),
        ("SELECT 'µs ≤ ±', $a", "SELECT 'µs ≤ ±', 'it''s'"),
        ("SELECT $ab, $a", "SELECT $ab, 'it''s'"),
        ("SELECT $$ $a $$, $a", "SELECT $$ $a $$, 'it''s'"),
    ],
)
def test_only_parameters_of_duckdb_are_replaced(sql, bound):
    assert parameters.bind(sql, {"a": "it's"}) == bound


@pytest.mark.parametrize("text", ["SELECT 1", "/* title = */ SELECT 1", '/* title = "x" */ SELECT 1'])
def test_a_file_without_a_complete_header_is_refused(tmp_path, text):
    (tmp_path / "bad.sql").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"bad\.sql"):
        parse_pack(tmp_path / "bad.sql")


def test_packs_are_found_by_name_by_alias_and_with_underscores():
    assert library.get_pack("per_token") is library.get_pack("per-token")
    assert library.get_pack("cuda_gpu_kern_sum") is library.get_pack("top")
    with pytest.raises(UsageError) as caught:
        library.get_pack("tpo")
    assert caught.value.hint == "did you mean top?"


@pytest.mark.parametrize(
    "alias",
    [
        "cuda_gpu_kern_sum",
        "cuda_api_sum",
        "cuda_gpu_kern_gb_sum",
        "cuda_gpu_mem_time_sum",
        "cuda_gpu_mem_size_sum",
        "cuda_kern_exec_sum",
        "nvtx_sum",
    ],
)
def test_report_names_of_nsys_are_aliases(alias):
    assert library.get_pack(alias)


def test_a_query_names_the_views_it_reads_but_not_those_it_defines():
    sql = "WITH mine AS (SELECT 1) SELECT * FROM kernels JOIN mine ON true WHERE name IN (SELECT name FROM strings)"
    assert names.list_tables_read(sql) == ["kernels", "strings"]


class TestBranches:
    """Branches for another value of a parameter are removed, with the views that they read."""

    SQL = """WITH a AS (SELECT 1 AS x UNION ALL SELECT 2),
        b AS (
            SELECT x FROM a WHERE $by = 'one'
            UNION ALL
            SELECT x + 10 FROM (SELECT x FROM a UNION ALL SELECT 3)
            WHERE $by = 'two'
            UNION ALL
            SELECT x + 20 FROM a WHERE $by = 'three'
            UNION ALL
            SELECT 99 FROM a WHERE $by = 'three' AND x = 1
            UNION ALL
            SELECT x + 30 FROM a WHERE $by IN ('one', 'three')
        )
        SELECT x FROM b ORDER BY x"""

    @pytest.mark.parametrize("choice", ["one", "two", "three", "four"])
    def test_the_answer_is_that_of_all_branches(self, choice):
        full_sql = parameters.bind(self.SQL, {"by": choice})
        reduced_sql = parameters.bind(headers.drop_branches(self.SQL, {"by": choice}), {"by": choice})
        assert duckdb.sql(reduced_sql).fetchall() == duckdb.sql(full_sql).fetchall()

    def test_branches_for_another_value_are_removed(self):
        assert "x + 20" in headers.drop_branches(self.SQL, {"by": "three"})
        assert "x + 20" not in headers.drop_branches(self.SQL, {"by": "one"})
        assert "x + 30" in headers.drop_branches(self.SQL, {"by": "one"})
        assert "x + 30" not in headers.drop_branches(self.SQL, {"by": "two"})
        assert headers.drop_branches(self.SQL, {}) == self.SQL

    def test_reports_read_only_the_views_of_their_choice(self):
        def list_views(group_by):
            return {view.name for view in views_read(library.get_pack("top").statement({"group_by": group_by})[0])}

        assert "kernels_in_nvtx" in list_views("nvtx")
        assert "kernels_in_nvtx" not in list_views("full")


def test_no_line_of_sql_is_longer_than_120_characters():
    lines = [line for file in our_sql.list_files() for line in file.read_text(encoding="utf-8").splitlines()]
    assert [line for line in lines if len(line) > 120] == []
