"""Another thread inserts rows: at the end of the block the table has them, or an error is raised."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

from nsys_insight.facts.idle.inserts import Inserts, cast_words


@pytest.fixture(params=["main", "another"])
def connection(request):
    """Give a connection that uses its own or another catalog."""
    with duckdb.connect() as database:
        if request.param == "another":
            database.execute('ATTACH \':memory:\' AS "an other"; USE "an other"')
        database.execute("CREATE SCHEMA facts; CREATE TABLE facts.t (number BIGINT, kind ENUM ('odd', 'even'))")
        yield database


def test_the_table_has_all_rows_at_the_end(connection):
    kinds = list(cast_words(connection, "t", "kind", ("even", "odd")).values())
    with Inserts(connection) as inserts:
        for first in range(0, 100, 10):
            columns = {"number": np.arange(first, first + 10)}
            inserts.add(
                "t",
                f"SELECT number, CASE number % 2 WHEN 0 THEN {kinds[0]} ELSE {kinds[1]} END AS kind "
                "FROM rows_to_insert",
                columns,
            )
    totals = connection.execute(
        "SELECT kind::VARCHAR, count(*), sum(number)::BIGINT FROM facts.t GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    assert totals == [("even", 50, sum(range(0, 100, 2))), ("odd", 50, sum(range(1, 100, 2)))]


@pytest.mark.parametrize("later_inserts", [0, 10])
def test_an_error_of_an_insert_is_raised(connection, later_inserts):
    def add_all():
        with Inserts(connection) as inserts:
            inserts.add("t", "SELECT error('no room') AS number FROM rows_to_insert", {"number": np.arange(3)})
            for _ in range(later_inserts):
                inserts.add("t", "SELECT number FROM rows_to_insert", {"number": np.arange(3)})

    with pytest.raises(duckdb.Error, match="no room"):
        add_all()


def test_an_error_of_the_block_comes_before_that_of_an_insert(connection):
    def add_all():
        with Inserts(connection) as inserts:
            inserts.add("t", "SELECT error('no room') AS number FROM rows_to_insert", {"number": np.arange(3)})
            raise KeyError("first")

    with pytest.raises(KeyError, match="first"):
        add_all()
