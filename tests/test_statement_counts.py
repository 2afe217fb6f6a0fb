"""How much a diagnosis asks of DuckDB, which does not depend on the machine: statements, tables and their rows.

Times differ from machine to machine, so a change that makes `diagnose` slower would pass a timed test now and then. If
a count has to grow, write the new one here and say why in the commit. `benchmarks/measure.py` has the times.
"""

from __future__ import annotations

from contextlib import closing

import pytest
from sweeps import sweep

import nsys_insight
from nsys_insight.diagnose.diagnosis import diagnose
from nsys_insight.ingest import database
from nsys_insight.packs.step_options import AUTO
from nsys_insight.session import model, open_strategies

# Trace: statements (one of them only on the first connection of a process), tables that are filled, and rows in them.
LIMITS = {
    "decode_eager": (378, 164, 74_349),
    "decode_graph_node": (456, 163, 51_078),
    "churn": (466, 167, 24_655),
}


@pytest.fixture
def connections(monkeypatch):
    """Log the statements of each database that a session opens, and return the connections."""
    connections = []

    def connect(*arguments, **options):
        connection = original(*arguments, **options)
        connection.execute("CALL enable_logging('QueryLog', storage = 'memory')")
        connections.append(connection)
        return connection

    original = database.connect
    for module in (database, model, open_strategies):
        monkeypatch.setattr(module, "connect", connect)
    return connections


def count_work(connection):
    """Return the numbers of statements, of tables, and of rows in these tables."""
    with closing(connection.cursor()) as cursor:
        ((statement_count,),) = cursor.execute("SELECT count(*) FROM duckdb_logs WHERE type = 'QueryLog'").fetchall()
        tables = cursor.execute(
            "SELECT format('{}.{}.{}', database_name, schema_name, table_name) FROM duckdb_tables() WHERE NOT internal"
        ).fetchall()
        row_counts = [cursor.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0] for (table,) in tables]
    return statement_count, len(tables), sum(row_counts)


@pytest.mark.parametrize("name", ["decode_eager", "churn", *sweep(["decode_graph_node"])])
def test_a_diagnosis_asks_no_more_than_before(name, sample, connections):
    with nsys_insight.open(sample(name)) as trace:
        diagnose(trace, AUTO)
        counts = tuple(map(sum, zip(*map(count_work, connections), strict=True)))
    assert all(count <= limit for count, limit in zip(counts, LIMITS[name], strict=True)), counts
    # A count far below the figure means that the figure is out of date, and protects nothing.
    assert all(count >= 0.9 * limit for count, limit in zip(counts, LIMITS[name], strict=True)), counts
