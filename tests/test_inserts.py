"""Rows that another thread adds are there at the end of the block, or it says why not."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

from nsys_insight.facts.idle.inserts import Inserts, words


@pytest.fixture(params=["main", "another"])
def connection(request):
    """Give a connection, which may have turned to another catalog."""
    with duckdb.connect() as made:
        if request.param == "another":
            made.execute('ATTACH \':memory:\' AS "an other"; USE "an other"')
        made.execute("CREATE SCHEMA facts; CREATE TABLE facts.t (number BIGINT, kind ENUM ('odd', 'even'))")
        yield made


def test_all_rows_are_there_at_the_end(connection):
    kinds = list(words(connection, "t", "kind", ("even", "odd")).values())
    with Inserts(connection) as inserts:
        for first in range(0, 100, 10):
            columns = {"number": np.arange(first, first + 10)}
            inserts.add(
                "t",
                f"SELECT number, CASE number % 2 WHEN 0 THEN {kinds[0]} ELSE {kinds[1]} END AS kind FROM found",
                columns,
            )
    found = connection.execute(
        "SELECT kind::VARCHAR, count(*), sum(number)::BIGINT FROM facts.t GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    assert found == [("even", 50, sum(range(0, 100, 2))), ("odd", 50, sum(range(1, 100, 2)))]


@pytest.mark.parametrize("after", [0, 10])
def test_what_fails_is_raised(connection, after):
    def add_all():
        with Inserts(connection) as inserts:
            inserts.add("t", "SELECT error('no room') AS number FROM found", {"number": np.arange(3)})
            for _ in range(after):
                inserts.add("t", "SELECT number FROM found", {"number": np.arange(3)})

    with pytest.raises(duckdb.Error, match="no room"):
        add_all()


def test_an_error_of_the_block_is_the_one_that_is_raised(connection):
    def add_all():
        with Inserts(connection) as inserts:
            inserts.add("t", "SELECT error('no room') AS number FROM found", {"number": np.arange(3)})
            raise KeyError("first")

    with pytest.raises(KeyError, match="first"):
        add_all()
