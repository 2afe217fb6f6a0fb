"""`nsys-insight cache` says what is kept of which trace, and `cache clear` removes what is asked for."""

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


def listed(**environment):
    result = run("cache", "--format", "json", **environment)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture
def folder(tmp_path, cache, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return cache


@pytest.fixture
def traces(folder, sample):
    """Two traces with a copy each; that of the second was used an hour and a half ago."""
    paths = []
    for name in ("one", "two"):
        path = Path("traces") / f"{name}.sqlite"
        path.parent.mkdir(exist_ok=True)
        shutil.copy(sample("churn"), path)
        assert run("top", path, "--cache").returncode == 0
        paths.append(path.absolute())
    (second,) = (entry.path for entry in cache_entries.entries(folder) if entry.about.is_of(paths[1]))
    os.utime(second, (time.time() - 1.5 * HOUR_S,) * 2)
    return paths


def test_an_empty_cache_is_said_to_be_empty_and_is_not_made(folder):
    result = run("cache")
    assert "The cache is empty." in result.stdout
    assert f"0 entries in {folder}: 0 B of at most" in result.stderr
    assert run("cache", "clear").stdout == f"removed nothing from {folder}\n"
    assert not folder.exists()


@pytest.mark.slow
def test_it_lists_what_is_of_which_trace_what_was_used_last_first(folder, traces):
    found = listed(NSYS_INSIGHT_CACHE_SIZE="5GB")
    one, two = found["rows"]
    assert [one["trace"], two["trace"]] == list(map(str, traces))
    assert {row["holds"] for row in (one, two)} == {"copy, facts and answers"}
    assert {row["state"] for row in (one, two)} == {"unchanged"}
    sizes = {path.name: path.stat().st_size for path in folder.glob("*.duckdb") if not path.name.startswith("model-")}
    assert {row["file"]: row["size_bytes"] for row in (one, two)} == sizes
    assert found["summary"] == {"folder": str(folder), "size_bytes": sum(sizes.values()), "most_bytes": 5 * 10**9}
    assert one["last_used"] > two["last_used"]


@pytest.mark.slow
def test_it_says_which_trace_changed_or_is_gone(traces):
    traces[0].unlink()
    with traces[1].open("ab") as stream:
        stream.write(b"more")
    assert [row["state"] for row in listed()["rows"]] == ["gone", "changed"]


def test_an_entry_of_an_earlier_version_is_unknown(folder):
    folder.mkdir()
    (folder / f"{32 * 'a'}-2023.4.4.sqlite").write_bytes(b"old")
    (row,) = listed()["rows"]
    assert (row["trace"], row["state"], row["holds"], row["size_bytes"]) == (None, None, None, 3)


@pytest.mark.slow
def test_clear_removes_all_and_says_how_much_and_leaves_what_is_not_its_own(folder, traces):
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
    assert [row["trace"] for row in listed()["rows"]] == [str(traces[1])]


def test_clear_of_a_folder_is_of_all_traces_in_it(folder, traces):
    assert run("cache", "clear", "elsewhere").stdout == f"removed nothing from {folder}\n"
    assert run("cache", "clear", traces[0].parent).stdout.startswith("removed 2 entries, ")


@pytest.mark.slow
def test_clear_of_what_is_older_leaves_what_is_younger(folder, traces):
    assert run("cache", "clear", "--older-than", "2h").stdout == f"removed nothing from {folder}\n"
    assert run("cache", "clear", "--older-than", "1h").stdout.startswith("removed 1 entry, ")
    assert [row["trace"] for row in listed()["rows"]] == [str(traces[0])]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there an open file cannot be removed")
def test_clear_keeps_what_an_open_process_uses_and_says_so(traces):
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
    ("arguments", "environment", "said"),
    [
        (["cache", "clear", "--older-than", "soon"], {}, "--older-than takes an age, not 'soon'"),
        (["cache"], {"NSYS_INSIGHT_CACHE_SIZE": "5XB"}, "$NSYS_INSIGHT_CACHE_SIZE takes a size in bytes, not '5XB'"),
        (["cache", "--format", "xml"], {}, "there is no format 'xml'"),
    ],
)
def test_what_makes_no_sense_is_told_with_a_hint(folder, arguments, environment, said):
    result = run(*arguments, **environment)
    assert result.returncode == 2
    assert said in result.stderr
    assert "hint: " in result.stderr
