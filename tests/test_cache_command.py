"""`nsys-insight cache` lists the entries of each trace, and `cache clear` removes entries."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import command_line
import pytest

from nsys_insight.ingest import cache_entries

HOUR_S = 60 * 60


def run(*arguments, **environment):
    return command_line.run(*arguments, env=environment)


def list_entries(**environment):
    result = run("cache", "--format", "json", **environment)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture
def folder(tmp_path, cache, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return cache


@pytest.fixture
def traces(folder, sample):
    """Make two traces with cached copies; the second copy was used an hour and a half ago."""
    paths = []
    for name in ("one", "two"):
        path = Path("traces") / f"{name}.sqlite"
        path.parent.mkdir(exist_ok=True)
        shutil.copy(sample("churn"), path)
        assert run("top", path, "--cache").returncode == 0
        paths.append(path.absolute())
    (second,) = (entry.path for entry in cache_entries.list_entries(folder) if entry.manifest.is_made_from(paths[1]))
    os.utime(second, (time.time() - 1.5 * HOUR_S,) * 2)
    return paths


def test_an_empty_cache_is_reported_and_not_created(folder):
    result = run("cache")
    assert "The cache is empty." in result.stdout
    assert f"0 entries in {folder}: 0 B of at most" in result.stderr
    assert run("cache", "clear").stdout == f"removed nothing from {folder}\n"
    assert not folder.exists()


@pytest.mark.slow
def test_it_lists_entries_by_last_use_with_their_traces(folder, traces):
    document = list_entries(NSYS_INSIGHT_CACHE_SIZE="5GB")
    first, second = document["rows"]
    assert [first["trace"], second["trace"]] == list(map(str, traces))
    assert {row["holds"] for row in (first, second)} == {"copy, facts and answers"}
    assert {row["state"] for row in (first, second)} == {"unchanged"}
    sizes = {path.name: path.stat().st_size for path in folder.glob("*.duckdb") if not path.name.startswith("model-")}
    assert {row["file"]: row["size_bytes"] for row in (first, second)} == sizes
    assert document["summary"] == {"folder": str(folder), "size_bytes": sum(sizes.values()), "most_bytes": 5 * 10**9}
    assert first["last_used"] > second["last_used"]


@pytest.mark.slow
def test_it_reports_traces_that_changed_or_are_gone(traces):
    traces[0].unlink()
    with traces[1].open("ab") as stream:
        stream.write(b"more")
    assert [row["state"] for row in list_entries()["rows"]] == ["gone", "changed"]


def test_an_entry_of_an_earlier_version_is_unknown(folder):
    folder.mkdir()
    (folder / f"{32 * 'a'}-2023.4.4.sqlite").write_bytes(b"old")
    (row,) = list_entries()["rows"]
    assert (row["trace"], row["state"], row["holds"], row["size_bytes"]) == (None, None, None, 3)


@pytest.mark.slow
def test_clear_removes_all_entries_and_keeps_other_files(folder, traces):
    (folder / "thesis.tex").write_text("")
    result = run("cache", "clear")
    assert result.stdout.startswith("removed 2 entries, ")
    assert result.stdout.endswith(f" MiB, from {folder}\n")
    assert [path.name for path in folder.iterdir()] == ["thesis.tex"]


@pytest.mark.slow
@pytest.mark.parametrize("word", ["traces/one.sqlite", "traces/one.nsys-rep", "link.sqlite"])
def test_clear_of_one_trace_leaves_the_others(traces, word):
    Path("link.sqlite").symlink_to(traces[0])
    traces[0].unlink()
    assert run("cache", "clear", word).stdout.startswith("removed 1 entry, ")
    assert [row["trace"] for row in list_entries()["rows"]] == [str(traces[1])]


def test_clear_of_a_folder_removes_the_entries_of_its_traces(folder, traces):
    assert run("cache", "clear", "elsewhere").stdout == f"removed nothing from {folder}\n"
    assert run("cache", "clear", traces[0].parent).stdout.startswith("removed 2 entries, ")


@pytest.mark.slow
def test_clear_by_age_keeps_newer_entries(folder, traces):
    assert run("cache", "clear", "--older-than", "2h").stdout == f"removed nothing from {folder}\n"
    assert run("cache", "clear", "--older-than", "1h").stdout.startswith("removed 1 entry, ")
    assert [row["trace"] for row in list_entries()["rows"]] == [str(traces[0])]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there an open file cannot be removed")
def test_clear_keeps_entries_in_use_and_reports_them(traces):
    with subprocess.Popen(
        [*command_line.PROCESS, "shell", traces[0]],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as shell:  # fmt: skip
        shell.stdin.write("SELECT 1 AS x;\n")
        shell.stdin.flush()
        assert shell.stdout.readline()
        result = run("cache", "clear")
        assert result.stdout.startswith("removed 1 entry, ")
        assert "in use" in result.stderr
        shell.stdin.write("SELECT count(*) FROM kernels;\n")
        assert "500" in shell.communicate(timeout=60)[0]
        assert shell.returncode == 0
    assert run("cache", "clear").stdout.startswith("removed 1 entry, ")


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (["cache", "clear", "--older-than", "soon"], {}, "--older-than takes an age, not 'soon'"),
        (["cache"], {"NSYS_INSIGHT_CACHE_SIZE": "5XB"}, "$NSYS_INSIGHT_CACHE_SIZE takes a size in bytes, not '5XB'"),
        (["cache", "--format", "xml"], {}, "there is no format 'xml'"),
    ],
)
def test_bad_arguments_have_an_error_and_a_hint(folder, arguments, environment, message):
    result = run(*arguments, **environment)
    assert result.returncode == 2
    assert message in result.stderr
    assert "hint: " in result.stderr
