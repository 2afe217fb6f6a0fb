"""A fleet: many workers compute the facts once; the facts answer like the traces, also after failures."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace

import duckdb
import pytest
from command_line import run
from conversions import without_most_facts
from many_traces import make_full_trace
from rank_traces import Run
from schemas import get_validator, validate

import nsys_insight
from nsys_insight.errors import ToolError, TraceError, UsageError
from nsys_insight.facts import store
from nsys_insight.fleet import pool
from nsys_insight.fleet.fleet import Workers, build_fleet
from nsys_insight.ingest import facts_folder, nsys

MS = 1_000_000
SECRET = "hunter2-in-the-environment"  # noqa: S105 - the traces contain it; the facts must not
# Reports about the run. All that `diagnose` reads is among them.
REPORTS_OF_RUN = ("ranks", "collectives")
VIEWS = (
    "kernels", "api_calls", "memcpys", "memsets", "syncs", "nvtx_ranges", "memory_events", "gpu_metrics", "os_calls",
    "graph_launches", "gpu_limits", "threads", "call_frames", "diagnostics", "profiler_overheads",
)  # fmt: skip
REPORTS_OF_RANKS = ("top", "idle")


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """Give the traces of two ranks, and a file that is not a trace.

    The second rank is late. Only the environment of the launcher has the rank numbers.
    """
    folder = tmp_path_factory.mktemp("run")
    ranks = Run(2, steps=6)
    ranks.python[1] = {2: 12 * MS, 4: 12 * MS}
    for number, trace in enumerate(ranks.traces()):
        trace.environment = {"RANK": str(1 - number), "WORLD_SIZE": "3", "TOKEN": SECRET}
        trace.write(folder / f"part-{'ab'[number]}.sqlite")
    (folder / "part-c.sqlite").write_text("nothing that nsys wrote")
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def facts(traces, tmp_path_factory):
    """Return the folder of the facts, one of each trace, built by one process, and the answer of the command."""
    folder = tmp_path_factory.mktemp("facts")
    with without_most_facts():
        return folder, build_fleet(traces, folder, Workers())


def list_folders(facts):
    return sorted(facts.glob("*.facts"))


def read_states(answer):
    return {row["file"]: row["state"] for row in answer.dicts()}


def read_answers(paths, reports=(*REPORTS_OF_RUN, *REPORTS_OF_RANKS)):
    with nsys_insight.open(paths, use_cache=False) as ranks:
        answers = {name: ranks.answer(name) for name in reports}
        diagnosis = ranks.diagnose()
        sql = ranks.sql(
            "SELECT trace, name, sum(duration_ns)::BIGINT AS time_ns FROM kernels GROUP BY ALL ORDER BY ALL"
        )
        rows_and_notes = {name: (answer.dicts(), answer.notes) for name, answer in answers.items()}
    findings = [
        (finding.name, finding.recoverable_ns, finding.place, finding.evidence) for finding in diagnosis.findings
    ]
    return {
        **rows_and_notes,
        "diagnose": (diagnosis.run.sentence, diagnosis.verdict, diagnosis.shares, findings),
        "sql": sql.rows(),
    }


# The same answers ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_facts_answer_as_the_traces_do(traces, tmp_path, monkeypatch):
    build_fleet(traces, tmp_path, Workers())
    expected = read_answers(traces[:2])
    assert expected["ranks"][0][0]["late_steps"] == 2
    assert "rank 2 is not in these traces" in expected["ranks"][1]  # known from the launcher
    filled_kinds, fill_facts = [], store.Facts._fill

    def record_and_fill(facts, kind, *arguments):
        filled_kinds.append(kind)
        fill_facts(facts, kind, *arguments)

    monkeypatch.setattr(store.Facts, "_fill", record_and_fill)
    assert read_answers(list_folders(tmp_path)) == expected
    assert filled_kinds == []  # all facts were present
    with nsys_insight.open(list_folders(tmp_path), use_cache=False) as fleet_facts:
        fleet_facts.answer("steps", step_range="step")
        assert "steps" in filled_kinds  # the steps differ now
        filled_kinds.clear()
        # Facts of another version are ignored, because their definitions may differ.
        monkeypatch.setattr(store, "digest_definitions", lambda: "another version")
        assert fleet_facts.answer("ranks").dicts() == expected["ranks"][0]
        assert {"ranks", "nccl"} <= set(filled_kinds)


def test_of_the_environment_only_the_rank_is_stored(facts):
    with nsys_insight.open(list_folders(facts[0])[0]) as trace:
        settings = trace.sql("SELECT value FROM raw.META_DATA_CAPTURE WHERE value LIKE '%=%'")
        assert sorted(settings["value"]) == ['RANK="1"', 'WORLD_SIZE="3"']


# Failures ------------------------------------------------------------------------------------------------------------


def test_an_unreadable_file_is_listed_and_the_others_answer(facts):
    folder, answer = facts
    assert read_states(answer) == {"part-a": "written", "part-b": "written", "part-c": "failed"}
    first = answer.dicts()[0]
    assert (first["file"], first["size_bytes"]) == ("part-c", None)
    assert "is a text file, not a trace" in first["why"]
    assert answer.notes[0].startswith("2 written, 1 failed; ")
    process = run("top", folder, "--format", "csv")
    assert process.stdout.startswith("name,"), "of two ranks added up"
    assert f"1 trace is not in {folder}: fleet could not read part-c.sqlite" in process.stderr


def test_facts_that_lost_a_table_are_refused_with_its_name(facts, tmp_path):
    damaged = shutil.copytree(list_folders(facts[0])[0], tmp_path / "part-a.facts")
    (damaged / "raw" / "StringIds.parquet").unlink()
    process = run("top", damaged)
    assert process.returncode == TraceError.exit_code
    assert "raw/StringIds.parquet was lost" in process.stderr


@pytest.mark.parametrize(
    "edit",
    [
        lambda manifest: manifest["columns"]["CUPTI_ACTIVITY_KIND_KERNEL"].remove("end"),
        lambda manifest: manifest.update(left_out="1 of 3 kernels is left out"),
        lambda manifest: manifest.update(files={}),
    ],
)
def test_facts_with_an_edited_manifest_are_refused(facts, tmp_path, edit):
    """Without their ends, kernels would take 0 ns."""
    damaged = shutil.copytree(list_folders(facts[0])[0], tmp_path / "part-a.facts")
    manifest = json.loads((damaged / "about.json").read_text())
    edit(manifest)
    (damaged / "about.json").write_text(json.dumps(manifest))
    process = run("top", damaged)
    assert process.returncode == TraceError.exit_code
    assert "about.json is missing, was edited, or is of another version" in process.stderr


def test_facts_of_an_earlier_version_are_read(facts, tmp_path):
    """They wrote no digests."""
    folder = shutil.copytree(list_folders(facts[0])[0], tmp_path / "part-a.facts")
    manifest = json.loads((folder / "about.json").read_text())
    del manifest["files"], manifest["digest"]
    (folder / "about.json").write_text(json.dumps(manifest))
    assert run("top", folder).returncode == 0


def test_facts_of_a_stranger_with_other_columns_are_refused(facts, tmp_path):
    """The hashes in the manifest are right: somebody has written the folder like this."""
    damaged = shutil.copytree(list_folders(facts[0])[0], tmp_path / "part-a.facts")
    duckdb.sql("SELECT 1 AS x").write_parquet(str(damaged / "facts" / "steps.parquet"))
    replace(facts_folder.read_manifest(damaged), files=facts_folder.hash_files(damaged)).write(damaged)
    process = run("per-token", damaged)
    assert process.returncode == TraceError.exit_code, process.stderr
    assert "facts/steps.parquet has other columns or types" in process.stderr


def test_finished_facts_stay_until_the_file_changes(traces, facts, tmp_path):
    run_folder, folder = tmp_path / "run", tmp_path / "facts"
    shutil.copytree(facts[0], folder)
    run_folder.mkdir()
    paths = [shutil.copy(path, run_folder / path.name) for path in traces]
    manifests = {path.stem: facts_folder.read_manifest(folder / f"{path.stem}.facts") for path in paths[:2]}
    for path in paths[:2]:  # as if the facts had been computed from these files
        manifest = manifests[path.stem]
        local_manifest = facts_folder.Manifest(**{**vars(manifest), "identity": facts_folder.cache_folder.key(path)})
        local_manifest.write(folder / f"{path.stem}.facts")
    before = [
        (path, path.stat().st_mtime_ns) for path in sorted(folder.rglob("*.parquet")) if path.parent.name != "run"
    ]
    assert read_states(build_fleet(paths, folder, Workers())) == {
        "part-a": "kept",
        "part-b": "kept",
        "part-c": "failed",
    }
    assert before == [(path, path.stat().st_mtime_ns) for path, _ in before]
    paths[0].write_bytes(paths[0].read_bytes()[:20_000])
    # Its facts would answer for the earlier file.
    assert read_states(build_fleet(paths, folder, Workers())) == {
        "part-a": "failed",
        "part-b": "kept",
        "part-c": "failed",
    }
    assert [path.name for path in list_folders(folder)] == ["part-b.facts"]
    assert not (folder / ".work").exists()


def test_a_fleet_without_a_readable_trace(traces, tmp_path, monkeypatch):
    with pytest.raises(TraceError, match=r"^part-c.sqlite cannot be read: .* is a text file"):
        build_fleet(traces[2:], tmp_path / "facts", Workers())
    report = tmp_path / "part-d.nsys-rep"
    report.write_bytes(b"NVIDIA Tegra Profiler Report 20240101" + bytes(100))
    monkeypatch.setattr(nsys, "find_installed", list)
    message = r"^none of 2 traces can be read; part-c.* text file"
    with pytest.raises(TraceError, match=message):
        build_fleet([traces[2], report], tmp_path / "facts", Workers())
    failures = facts_folder.read_failures(tmp_path / "facts")
    assert failures["part-d.nsys-rep"] == f"nsys, which exports it, is not installed on {platform.node()}"


def test_facts_are_not_written_next_to_the_traces(traces):
    with pytest.raises(UsageError, match="the traces themselves are in"):
        build_fleet(traces, traces[0].parent, Workers())


def test_files_of_one_name_get_folders_of_their_own(traces, tmp_path, monkeypatch):
    for node in ("node1", "node2"):
        (tmp_path / node).mkdir()
        shutil.copy(traces[2], tmp_path / node / "rank0.sqlite")
    tasks_run = []
    monkeypatch.setattr(pool, "run_in_process", lambda tasks: tasks_run.extend(tasks) or iter(()))
    with pytest.raises(KeyError):
        build_fleet([tmp_path / "node1/rank0.sqlite", tmp_path / "node2/rank0.sqlite"], tmp_path / "facts", Workers())
    assert [task.folder.name for task in tasks_run] == ["node1-rank0.facts", "node2-rank0.facts"]


def test_without_dask_the_error_says_how_to_install_it(traces, tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "has_dask", lambda: False)
    with pytest.raises(ToolError, match="several workers need Dask") as error:
        build_fleet(traces, tmp_path / "facts", Workers(count=2))
    assert "pip install 'nsys-insight[fleet]'" in error.value.hint
    assert "--workers 1" in error.value.hint


# On a cluster --------------------------------------------------------------------------------------------------------


def kill_first_worker(folder, killed_processes):
    """Kill the process that builds the first folder, while it builds. The folder has the process id in its name."""
    deadline = time.monotonic() + 60
    while not killed_processes and time.monotonic() < deadline:
        with suppress(OSError):
            for unfinished_facts in folder.glob(".nsys-insight-*/*/facts"):
                process = int(unfinished_facts.parent.parent.name.removeprefix(".nsys-insight-").partition("-")[0])
                assert process != os.getpid()
                os.kill(process, signal.SIGKILL)
                killed_processes.append(process)
                break
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.skipif(not pool.has_dask(), reason="Dask is not installed")
def test_a_worker_that_is_killed_is_replaced(traces, tmp_path):
    paths, folder = [make_full_trace().write(tmp_path / "all.sqlite"), *traces[1:]], tmp_path / "facts"
    killed_processes: list[int] = []
    killer = threading.Thread(target=kill_first_worker, args=(folder, killed_processes))
    killer.start()
    answer = build_fleet(paths, folder, Workers(count=2, memory_bytes=2 * 10**9))
    killer.join()
    assert killed_processes
    assert read_states(answer) == {"all": "written", "part-b": "written", "part-c": "failed"}
    assert sorted(path.name for path in folder.iterdir()) == [
        ".nsys-insight-files",
        "all.facts",
        "fleet.json",
        "part-b.facts",
        "run",
    ]
    # The facts of a trace with all tables contain all of them.
    with nsys_insight.open(paths[0]) as trace, nsys_insight.open(folder / "all.facts") as copy:
        for view in VIEWS:
            query = f"SELECT count(*) FROM {view}"
            assert trace.sql(query).rows() == copy.sql(query).rows() != [(0,)], view


@pytest.mark.skipif(not pool.has_dask(), reason="Dask is not installed")
def test_a_scheduler_that_does_not_answer(traces, tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "_TIMEOUT_S", 0.5)
    with pytest.raises(ToolError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9"):
        build_fleet(traces, tmp_path / "facts", Workers(scheduler="tcp://127.0.0.1:9"))


CLUSTER = """
import sys
from distributed import LocalCluster
with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, host="127.0.0.1",
                  protocol="tcp") as cluster:
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(not pool.has_dask(), reason="Dask is not installed")
def test_a_running_cluster_is_used_and_its_end_is_reported(traces, tmp_path):
    folder, command = tmp_path / "facts", [sys.executable, "-c", CLUSTER]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command, **pipes) as cluster:
        workers = Workers(scheduler=cluster.stdout.readline().strip())
        assert read_states(build_fleet(traces[1:], folder, workers)) == {"part-b": "written", "part-c": "failed"}
        killed_processes: list[int] = []
        killer = threading.Thread(target=kill_first_worker, args=(folder, killed_processes))
        killer.start()
        with pytest.raises(ToolError, match=r"no longer answers; finished files are kept") as error:
            build_fleet(traces, folder, workers)
        killer.join()
        assert killed_processes == [cluster.pid]
        assert error.value.hint == "when it is there again, the same command goes on with the rest"
    assert [path.name for path in list_folders(folder)] == ["part-b.facts"]


@pytest.mark.skipif(not pool.has_dask(), reason="Dask is not installed")
def test_a_tls_scheduler_needs_keys(traces, tmp_path):
    with pytest.raises(ToolError, match=r"there are no keys to talk over TLS with tls://127.0.0.1:9") as error:
        build_fleet(traces, tmp_path / "facts", Workers(scheduler="tls://127.0.0.1:9"))
    assert "DASK_DISTRIBUTED__COMM__TLS__CA_FILE" in error.value.hint


# The command ---------------------------------------------------------------------------------------------------------


def test_the_command(traces, facts):
    process = run("fleet", traces[0].parent, "-o", facts[0], "--format", "csv", "--workers", "1")
    assert (process.returncode, process.stdout.splitlines()[0]) == (0, "file,state,size_bytes,time_ns,why")
    assert "note: 2 kept, 1 failed" in process.stderr


def test_the_answer_of_the_command_matches_its_schema(traces, facts):
    process = run("fleet", traces[0].parent, "-o", facts[0], "--format", "json", "--workers", "1")
    answer = json.loads(process.stdout)
    validate(answer, "fleet", "answer")
    assert Counter(row["state"] for row in answer["rows"]) == {"kept": 2, "failed": 1}
    assert not get_validator("fleet").is_valid(answer | {"rows": [answer["rows"][0] | {"more": 1}]})


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "fleet needs a folder to write to"),
        (("-o", "x", "--scheduler", "tcp://h:1", "--workers", "2"), "--scheduler has its own workers"),
        (("-o", "x", "--memory", "1MB"), "--memory 1MB is too little for a worker"),
    ],
)
def test_invalid_arguments(traces, arguments, text):
    process = run("fleet", traces[0], *arguments)
    assert process.returncode == 2
    assert text in process.stderr


def test_an_invalid_manifest_is_ignored(tmp_path):
    for text in ("", "{}", "[]", '{"schema": "nsys-insight-facts/1"}', '{"schema": "nsys-insight-facts/1", "file": 1}'):
        (tmp_path / "about.json").write_text(text)
        assert facts_folder.read_manifest(tmp_path) is None
