"""What CONTRIBUTING.md says to write is all that it takes: a view, a stored view, a fact in Python."""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import subprocess
import sys

import pytest
from conftest import REPOSITORY

SAMPLE = REPOSITORY / "sample_traces" / "churn.sqlite"
GUIDE = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")


def read_blocks(section):
    """Return the code blocks of a section."""
    text = GUIDE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"^```\w+\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def checkout(tmp_path):
    for folder in ("nsys_insight", "queries"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def read_rows(checkout, query):
    """Return the rows of a query, or None if there is no such relation."""
    process = subprocess.run(
        [sys.executable, "-m", "nsys_insight", "sql", str(SAMPLE), query, "--format", "csv"],
        cwd=checkout, env={**os.environ, "PYTHONPATH": str(checkout)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert not process.returncode or "does not exist" in process.stderr or "there is no" in process.stderr
    return None if process.returncode else list(csv.DictReader(io.StringIO(process.stdout)))


@pytest.mark.slow
def test_a_view_is_one_file_and_one_key_makes_it_a_fact(checkout):
    (view,) = read_blocks("Add a view")
    path = checkout / "queries" / "model" / "kernels" / "kernel_totals.sql"
    path.write_text(view, encoding="utf-8")
    rows = read_rows(checkout, "FROM kernel_totals ORDER BY name")
    assert {(row["name"], row["calls"]) for row in rows} == {
        (row["name"], row["calls"])
        for row in read_rows(checkout, "SELECT name, count(*) AS calls FROM kernels GROUP BY name")
    }
    assert read_rows(checkout, "FROM facts.kernel_totals") is None
    path.write_text(view.replace("[columns]\n", "stored = true\n[columns]\n"), encoding="utf-8")
    assert read_rows(checkout, "FROM kernel_totals ORDER BY name") == rows
    assert read_rows(checkout, "FROM facts.kernel_totals ORDER BY name") == rows


@pytest.mark.slow
def test_a_fact_in_python_is_one_folder(checkout):
    tables, module, statement = read_blocks("Add a fact")
    folder = checkout / "nsys_insight" / "facts" / "launch_totals"
    folder.mkdir()
    for name, text in (("tables.toml", tables), ("__init__.py", module), ("count.sql", statement)):
        (folder / name).write_text(text, encoding="utf-8")
    query = "SELECT thread_id, count(*) AS launches FROM api_calls WHERE call_group LIKE '%launch' GROUP BY thread_id"
    rows = read_rows(checkout, f"{query} ORDER BY thread_id")
    assert rows
    assert read_rows(checkout, "FROM launch_totals ORDER BY thread_id") == rows
