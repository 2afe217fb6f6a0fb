"""The program where it has no home, no room, no private cache folder, or no temporary files that stay."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import command_line
import planted
import pytest

import nsys_insight
from nsys_insight.errors import InsightError
from nsys_insight.ingest import cache_folder, database
from nsys_insight.session import sandbox
from nsys_insight.sql.statements import Statement

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="owners and rights are those of Unix")
as_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def trace(tmp_path):
    return planted.sync_bound(steps=8).write(tmp_path / "trace.sqlite")


def run(*arguments, cwd, **environment):
    """Run a command with nothing in its environment but what is given; a variable that is None is not set."""
    gone = dict.fromkeys(set(os.environ) - {"PYTHONPATH", "PATH", "LD_LIBRARY_PATH"})
    given = {name: str(value) for name, value in environment.items() if value is not None}
    return command_line.run(*arguments, cwd=cwd, env=gone | given)


class TestTheCacheFolder:
    def answers(self, done, *said):
        assert done.returncode == 0, done.stderr
        assert "sync_kernel" in done.stdout or "calls" in done.stdout
        assert "Traceback" not in done.stderr
        for text in said:
            assert text in done.stderr

    @pytest.mark.slow
    @as_root
    def test_of_another_user_is_refused_in_one_sentence_and_done_without(self, trace, tmp_path):
        theirs = tmp_path / "theirs"
        theirs.mkdir(mode=0o700)
        os.chown(theirs, 12345, 12345)
        said = f"note: the cache folder {theirs} is not used: it belongs to another user"
        done = run("top", trace, cwd=tmp_path, HOME=tmp_path, NSYS_INSIGHT_CACHE_DIR=theirs)
        self.answers(done, said)
        assert done.stderr.count("not used") == 1
        self.answers(run("top", trace, "--cache", cwd=tmp_path, HOME=tmp_path, NSYS_INSIGHT_CACHE_DIR=theirs), said)
        assert (
            "not used"
            not in run("top", trace, "--no-cache", cwd=tmp_path, HOME=tmp_path, NSYS_INSIGHT_CACHE_DIR=theirs).stderr
        )
        for command in (["cache"], ["cache", "clear"]):
            listed = run(*command, cwd=tmp_path, HOME=tmp_path, NSYS_INSIGHT_CACHE_DIR=theirs)
            assert (listed.returncode, "it belongs to another user" in listed.stderr) == (2, True)
        assert not list(theirs.iterdir())

    @pytest.mark.parametrize("home", [None, "", "/nonexistent", "/proc"])
    def test_without_a_home(self, trace, tmp_path, home):
        self.answers(run("top", trace, cwd=tmp_path, HOME=home))
        assert sorted(path.name for path in tmp_path.iterdir()) == ["trace.sqlite"]

    @as_root
    def test_of_a_user_who_is_nobody(self, trace, tmp_path):
        for folder in (tmp_path, *tmp_path.parents):
            if folder.stat().st_mode & 0o005 != 0o005:
                pytest.skip("others cannot reach this folder")
        done = subprocess.run(
            [*command_line.PROCESS, "top", str(trace)], cwd="/", user=12345, group=12345, extra_groups=[],
            env={"PYTHONPATH": os.environ.get("PYTHONPATH", ""), "PATH": os.environ["PATH"]},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if "Permission denied" in done.stderr or "No module named" in done.stderr:
            pytest.skip("others cannot reach the program")
        self.answers(done)

    def test_that_is_named_after_a_user_who_is_not_there(self, trace, tmp_path):
        self.answers(run("top", trace, cwd=tmp_path, HOME=tmp_path, NSYS_INSIGHT_CACHE_DIR="~nobody-of-that-name/x"))

    @pytest.mark.slow
    def test_where_it_and_locks_fail_the_answer_is_the_same(self, trace, monkeypatch):
        with nsys_insight.open(trace, use_cache=False) as opened:
            expected = opened.answer("idle").rows()
        monkeypatch.setattr(cache_folder, "lock", lambda *_, **__: None)
        for _ in range(2):
            with nsys_insight.open(trace, use_cache=True) as opened:
                assert opened.answer("idle").rows() == expected


class TestTemporaryFiles:
    def test_a_folder_that_is_not_there_is_replaced_by_another(self, trace, tmp_path):
        done = run("top", trace, cwd=tmp_path, HOME=tmp_path, TMPDIR=tmp_path / "none")
        assert done.returncode == 0, done.stderr

    @pytest.mark.slow
    def test_where_there_is_none_at_all_it_is_said(self, trace, tmp_path):
        code = (
            "import sys, tempfile; tempfile._candidate_tempdir_list = lambda: ['/proc/none']\n"
            "from nsys_insight.__main__ import main; main()"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, "top", trace], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert done.returncode == 1
        assert done.stderr.startswith("error: there is no folder for temporary files: No usable temporary directory")
        assert "hint: name one with room in it: TMPDIR=/path" in done.stderr

    @pytest.fixture
    def spilling(self, trace):
        with nsys_insight.open(trace, use_cache=False, memory="60MB", threads=2) as opened:
            yield opened

    @pytest.fixture
    def a_folder_of_its_own(self, tmp_path, monkeypatch):
        folder = tmp_path / "nsys-insight-x"
        folder.mkdir()
        monkeypatch.setattr(cache_folder, "temporary", lambda: folder)
        return folder

    @pytest.mark.parametrize(
        "asked",
        [
            lambda trace, sql, _: trace.query(sql),
            lambda trace, sql, path: trace.stream(Statement(sql)).write_parquet(path),
        ],
        ids=["query", "stream"],
    )
    def test_that_a_cleaner_takes_away_are_said_to_be_gone(self, a_folder_of_its_own, spilling, asked, tmp_path):
        shutil.rmtree(a_folder_of_its_own)
        statement = "SELECT range, hash(range) AS h FROM range(8000000) ORDER BY h"
        with pytest.raises(InsightError, match=f"something removes files in {tmp_path}") as told:
            asked(spilling, statement, tmp_path / "x.parquet")
        assert told.value.hint == "name a folder that nothing cleans up: TMPDIR=/path"

    @pytest.mark.slow
    def test_for_which_there_is_no_room(self, trace, tmp_path):
        """A file may not be larger than 2 MB, which says the same as a full disk and needs none."""
        code = (
            "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))\n"
            "from nsys_insight.__main__ import main; main()"
        )
        sql = "SELECT range, hash(range) AS h FROM range(8000000) ORDER BY h LIMIT 7000000"
        done = subprocess.run(
            [sys.executable, "-c", code, "sql", trace, sql, "--memory", "60MB", "--threads", "2", "--format", "csv"],
            capture_output=True, text=True, check=False, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 1
        assert "cannot be spilled to" in done.stderr
        assert "TMPDIR=/path" in done.stderr


def test_what_is_said_of_other_errors_is_not_about_temporary_files():
    import duckdb

    assert database.spill_failed(duckdb.IOException("IO Error: Cannot open file trace.duckdb")) is None
    assert database.spill_failed(ValueError(str(cache_folder.temporary()))) is None


def test_the_answers_folder_is_the_one_that_a_locked_connection_may_write_to(tmp_path):
    with sandbox.handover(tmp_path / "x") as inner:
        assert inner.is_relative_to(database.spill_folder())
        inner.write_text("whole")
    assert (tmp_path / "x").read_text() == "whole"
