"""Folders of Parquet files, and files next to a trace: names and links in them are data, and lead nowhere else."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import duckdb
import pytest
from command_line import run
from sweeps import sweep
from test_sandbox import write_parquet_folder

import nsys_insight
from nsys_insight.cli.trace_argument import Traces
from nsys_insight.errors import TraceError, UsageError

REPOSITORY = Path(__file__).parents[1]
SUMS = 'SELECT count(*) AS kernels, sum(end_ns) AS "end", sum(stream_id) AS stream FROM kernels'


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """Give a trace as a folder of Parquet files, as ``convert`` writes it."""
    folder = tmp_path_factory.mktemp("converted") / "trace"
    folder.mkdir()
    write_parquet_folder(REPOSITORY / "sample_traces" / "churn.sqlite", folder / "raw")
    return folder


def ask_sums(path):
    with nsys_insight.open(path) as trace:
        return trace.sql(SUMS).rows()


@pytest.mark.parametrize("name", ["a[1]c", "start=1/streamId=2", *sweep(["streamId=99", "end=7", "a*c", "a?c"])])
def test_a_folders_name_is_no_column_and_no_pattern(converted, sample, tmp_path, name):
    fitting_folder = tmp_path / "abc" / "trace" / "raw"
    fitting_folder.mkdir(parents=True)
    (fitting_folder / "StringIds.parquet").write_text("no table")
    folder = tmp_path / name / "trace"
    shutil.copytree(converted, folder)
    assert ask_sums(folder) == ask_sums(sample("churn"))


@pytest.mark.parametrize("place", ["raw", "raw/StringIds.parquet", "facts/steps.parquet", "facts"])
def test_a_link_out_of_a_folder_is_not_followed(converted, tmp_path, place):
    folder, secret = tmp_path / "inside" / "trace", tmp_path / "secret"
    shutil.copytree(converted, folder)
    (folder / "about.json").write_text("{}")
    secret.mkdir()
    duckdb.sql("SELECT 1 AS id, 'hunter2' AS value").write_parquet(str(secret / "StringIds.parquet"))
    link = folder / place
    shutil.rmtree(link) if link.is_dir() else link.unlink(missing_ok=True)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(secret / "StringIds.parquet" if link.suffix else secret)
    with pytest.raises(TraceError, match="leads out of the folder"):
        ask_sums(folder)
    answer = run("strings", folder)
    assert "hunter2" not in answer.stdout + answer.stderr
    if place.startswith("raw"):
        with pytest.raises(UsageError):
            Traces([tmp_path / "inside"]).find("trace")


@pytest.mark.parametrize("place", ["raw/OSRT_API.parquet", "facts/steps.parquet"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_a_pipe_in_a_folder_is_not_waited_for(converted, tmp_path, place, make):
    folder = tmp_path / "trace"
    shutil.copytree(converted, folder)
    (folder / "about.json").write_text("{}")
    file = folder / place
    file.parent.mkdir(exist_ok=True)
    file.unlink(missing_ok=True)
    make(file)
    with pytest.raises(TraceError, match="is not a regular file"):
        ask_sums(folder)


@pytest.mark.parametrize("place", ["raw/CUPTI_ACTIVITY_KIND_KERNEL.parquet", "../outside"])
def test_links_in_a_circle_lead_nowhere(converted, tmp_path, place):
    folder = tmp_path / "inside" / "trace"
    shutil.copytree(converted, folder)
    first, second = folder / "raw/CUPTI_ACTIVITY_KIND_KERNEL.parquet", folder / place
    first.unlink()
    first.symlink_to(second)
    if second != first:
        second.symlink_to(first)
    with pytest.raises(TraceError, match=r"leads out of the folder|is not a regular file"):
        ask_sums(folder)
    outcome = run("top", first)
    assert (outcome.returncode, "Traceback" in outcome.stderr) in ((2, False), (3, False)), outcome.stderr


def test_a_link_inside_of_a_folder_is_followed(converted, sample, tmp_path):
    folder = tmp_path / "trace"
    shutil.copytree(converted, folder)
    (folder / "raw" / "StringIds.parquet").rename(folder / "strings")
    (folder / "raw" / "StringIds.parquet").symlink_to(folder / "strings")
    (tmp_path / "link").symlink_to(folder)
    assert ask_sums(tmp_path / "link") == ask_sums(sample("churn"))


def test_files_next_to_a_trace_are_its_own(sample, tmp_path):
    allowed, outside = tmp_path / "inside", tmp_path / "outside"
    allowed.mkdir()
    outside.mkdir()
    shutil.copy(sample("churn"), allowed / "trace.sqlite")
    shutil.copy(REPOSITORY / "tests/data/ncu/zoo_a.ncu.raw.csv", outside)
    assert run("ncu", "import", outside / "zoo_a.ncu.raw.csv", "-o", outside / "data.ncu.duckdb").returncode == 0
    (allowed / "trace.ncu.duckdb").symlink_to(outside / "data.ncu.duckdb")
    count = "SELECT count(*) AS n FROM ncu_kernels"
    with nsys_insight.open(allowed / "trace.sqlite") as trace:
        assert trace.sql(count).rows() == [(0,)]
    (tmp_path / "elsewhere.sqlite").symlink_to(allowed / "trace.sqlite")
    shutil.copy(outside / "data.ncu.duckdb", allowed / "elsewhere.ncu.duckdb")
    (tmp_path / "elsewhere.ncu.duckdb").symlink_to(allowed / "elsewhere.ncu.duckdb")
    with nsys_insight.open(tmp_path / "elsewhere.sqlite") as trace:
        assert trace.sql(count)["n"].item() > 0
    (allowed / "trace.sqlite-wal").symlink_to(outside / "data.ncu.duckdb")
    with pytest.raises(TraceError, match="is not a regular file"):
        nsys_insight.open(allowed / "trace.sqlite")


def test_an_agent_gets_no_trace_by_a_link_out_of_the_folder(sample, tmp_path):
    allowed, outside = tmp_path / "inside", tmp_path / "outside"
    allowed.mkdir()
    outside.mkdir()
    shutil.copy(sample("churn"), outside / "trace.sqlite")
    (allowed / "trace.sqlite").symlink_to(outside / "trace.sqlite")
    assert Traces([allowed]).list_names() == []
    with pytest.raises(UsageError):
        Traces([allowed]).find(None)
    (allowed / "trace.sqlite").unlink()
    shutil.move(outside / "trace.sqlite", allowed)
    (outside / "link.sqlite").symlink_to(allowed / "trace.sqlite")
    with pytest.raises(UsageError):  # the files next to the link would be read
        Traces([allowed]).find(str(outside / "link.sqlite"))
    assert Traces([allowed]).find(None) == allowed / "trace.sqlite"
