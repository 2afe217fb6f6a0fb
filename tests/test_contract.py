"""The expected schema has only columns that queries read: every large trace is copied with all of them."""

from __future__ import annotations

import re

import our_sql

from nsys_insight.ingest import expected_schema


def test_each_column_is_read_by_a_query():
    queries = [path for path in our_sql.list_files() if path.name != "raw.sql"]
    words = {word for path in queries for word in re.findall(r"\w+", path.read_text())}
    assert [
        (table, name)
        for table, names in expected_schema.read_expected_schema().items()
        for name in names
        if name not in words
    ] == []
