"""`explore`, with a stand-in for Harlequin: it opens the model read-only, under the name of the trace."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

import duckdb
import pytest
from command_line import run

from nsys_insight.convert import convert

SAMPLES = Path(__file__).parents[1] / "sample_traces"
STAND_IN = """
import sys, pathlib, duckdb
assert sys.argv[1] == "--read-only", sys.argv
path = pathlib.Path(sys.argv[2])
with duckdb.connect(path, read_only=True) as connection:
    print(path.name, connection.execute("SELECT count(*) FROM kernels").fetchone()[0],
          connection.execute("SELECT count(*) FROM steps WHERE phase = 'steady'").fetchone()[0])
sys.exit(7)
"""


def explore(trace, folder):
    process = run("explore", trace, env={"NSYS_INSIGHT_CACHE_DIR": str(folder / "cache")})
    return process.returncode, process.stdout, process.stderr


@pytest.fixture
def harlequin(tmp_path, monkeypatch):
    package = tmp_path / "packages" / "harlequin"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(STAND_IN, encoding="utf-8")
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(package.parent), str(SAMPLES.parent)]))


def test_it_opens_the_model_and_builds_it_again_only_for_a_changed_trace(tmp_path, harlequin, monkeypatch):
    trace = Path(shutil.copy(SAMPLES / "churn.sqlite", tmp_path / "mine.sqlite"))
    before = trace.read_bytes()
    assert explore(trace, tmp_path)[:2] == (7, "mine.duckdb 500 18\n")
    (model_file,) = (tmp_path / "cache").glob("*-model.duckdb")
    modified_ns = model_file.stat().st_mtime_ns
    code, out, err = explore(trace, tmp_path)
    assert (code, out) == (7, "mine.duckdb 500 18\n")
    assert "making" not in err
    assert [file.stat().st_mtime_ns for file in (tmp_path / "cache").glob("*-model.duckdb")] == [modified_ns]
    assert trace.read_bytes() == before
    assert {file.name for file in tmp_path.iterdir()} == {"mine.sqlite", "cache", "packages"}
    shutil.copy(SAMPLES / "decode_graph_node.sqlite", trace)

    def write_small_model(_, path):
        with duckdb.connect(path) as connection:
            connection.execute("CREATE TABLE kernels AS SELECT 1; CREATE TABLE steps (phase VARCHAR)")

    monkeypatch.setattr(convert, "write_database", write_small_model)
    assert explore(trace, tmp_path)[1] == "mine.duckdb 1 0\n"


def test_without_harlequin_it_says_what_to_install(tmp_path, monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *arguments: None if name == "harlequin" else find_spec(name, *arguments),
    )
    code, out, err = explore(SAMPLES / "churn.sqlite", tmp_path)
    assert (code, out) == (4, "")
    assert "pip install 'nsys-insight[explore]'" in err
    assert not (tmp_path / "cache").exists()
