"""The raw contract holds what the model reads, and no more: each column of it is copied for every big trace."""

from __future__ import annotations

import re

from nsys_insight.ingest import contract
from tests.conftest import REPOSITORY


def test_each_column_is_read_by_a_query():
    queries = [path for path in (REPOSITORY / "queries").rglob("*.sql") if path.name != "raw.sql"]
    words = {word for path in queries for word in re.findall(r"\w+", path.read_text())}
    assert [(table, name) for table, names in contract.contract().items() for name in names if name not in words] == []
