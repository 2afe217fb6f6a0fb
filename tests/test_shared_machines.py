"""The program without a home, without disk space, without a private cache folder, or with deleted temporary files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import command_line
import planted
import pytest

import nsys_insight
from nsys_insight import cache_folder
from nsys_insight.errors import InsightError
from nsys_insight.ingest import database
from nsys_insight.session import sandbox
from nsys_insight.sql.statements import Statement

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="owners and rights are those of Unix")
as_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def trace(tmp_path):
    return planted.sync_bound(steps=8).write(tmp_path / "trace.sqlite")


def run(*arguments, cwd, **environment):
    """Run a command with only the given environment variables. A value of None unsets a variable."""
    unset = dict.fromkeys(set(os.environ) - {"PYTHONPATH", "PATH", "LD_LIBRARY_PATH"})
    variables = {name: str(value) for name, value in environment.items() if value is not None}
    return command_line.run(*arguments, cwd=cwd, env=unset | variables)


class TestCacheFolder:
    def check_answer(self, process, *notes):
        assert process.returncode == 0, process.stderr
        assert "sync_kernel" in process.stdout or "calls" in process.stdout
        assert "Traceback" not in process.stderr
        for text in notes:
            assert text in process.stderr

    @pytest.mark.slow
    @as_root
    def test_a_folder_of_another_user_is_refused_with_one_note(self, trace, tmp_path):
        foreign_folder = tmp_path / "theirs"
        foreign_folder.mkdir(mode=0o700)
        os.chown(foreign_folder, 12345, 12345)
        note = f"note: the cache folder {foreign_folder} is not used: it belongs to another user"
        process = run("top", trace, cwd=tmp_path, HOME=tmp_path, NSYS_INSIGHT_CACHE_DIR=foreign_folder)
        self.check_answer(process, note)
        assert process.stderr.count("not used") == 1
        self.check_answer(
            run("top", trace, "--cache", cwd=tmp_path, HOME=tmp_path, NSYS_INSIGHT_CACHE_DIR=foreign_folder), note
        )
        assert (
            "not used"
            not in run(
                "top", trace, "--no-cache", cwd=tmp_path, HOME=tmp_path, NSYS_INSIGHT_CACHE_DIR=foreign_folder
            ).stderr
        )
        for command in (["cache"], ["cache", "clear"]):
            process = run(*command, cwd=tmp_path, HOME=tmp_path, NSYS_INSIGHT_CACHE_DIR=foreign_folder)
            assert (process.returncode, "it belongs to another user" in process.stderr) == (2, True)
        assert not list(foreign_folder.iterdir())

    @pytest.mark.parametrize("home", [None, "", "/nonexistent", "/proc"])
    def test_without_a_home(self, trace, tmp_path, home):
        self.check_answer(run("top", trace, cwd=tmp_path, HOME=home))
        assert sorted(path.name for path in tmp_path.iterdir()) == ["trace.sqlite"]

    @as_root
    def test_an_unprivileged_user_without_a_home(self, trace, tmp_path):
        for folder in (tmp_path, *tmp_path.parents):
            if folder.stat().st_mode & 0o005 != 0o005:
                pytest.skip("others cannot reach this folder")
        process = subprocess.run(
            [*command_line.PROCESS, "top", str(trace)], cwd="/", user=12345, group=12345, extra_groups=[],
            env={"PYTHONPATH": os.environ.get("PYTHONPATH", ""), "PATH": os.environ["PATH"]},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if "Permission denied" in process.stderr or "No module named" in process.stderr:
            pytest.skip("others cannot reach the program")
        self.check_answer(process)

    def test_a_folder_in_the_home_of_an_unknown_user(self, trace, tmp_path):
        self.check_answer(
            run("top", trace, cwd=tmp_path, HOME=tmp_path, NSYS_INSIGHT_CACHE_DIR="~nobody-of-that-name/x")
        )

    @pytest.mark.slow
    def test_without_locks_the_answer_is_the_same(self, trace, monkeypatch):
        with nsys_insight.open(trace, use_cache=False) as opened_trace:
            expected = opened_trace.answer("idle").rows()
        monkeypatch.setattr(cache_folder, "lock", lambda *_, **__: None)
        for _ in range(2):
            with nsys_insight.open(trace, use_cache=True) as opened_trace:
                assert opened_trace.answer("idle").rows() == expected


class TestTemporaryFiles:
    def test_a_missing_folder_is_replaced_by_another(self, trace, tmp_path):
        process = run("top", trace, cwd=tmp_path, HOME=tmp_path, TMPDIR=tmp_path / "none")
        assert process.returncode == 0, process.stderr

    @pytest.mark.slow
    def test_without_any_folder_the_error_has_a_hint(self, trace, tmp_path):
        code = (
            "import sys, tempfile; tempfile._candidate_tempdir_list = lambda: ['/proc/none']\n"
            "from nsys_insight.__main__ import main; main()"
        )
        process = subprocess.run(
            [sys.executable, "-c", code, "top", trace], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert process.returncode == 1
        assert process.stderr.startswith("error: there is no folder for temporary files: No usable temporary directory")
        assert "hint: name one with room in it: TMPDIR=/path" in process.stderr

    @pytest.fixture
    def spilling(self, trace):
        with nsys_insight.open(trace, use_cache=False, memory="60MB", threads=2) as opened_trace:
            yield opened_trace

    @pytest.fixture
    def temporary_folder(self, tmp_path, monkeypatch):
        folder = tmp_path / "nsys-insight-x"
        folder.mkdir()
        monkeypatch.setattr(cache_folder, "temporary_folder", lambda: folder)
        return folder

    @pytest.mark.parametrize(
        "ask",
        [
            lambda trace, sql, _: trace.query(sql),
            lambda trace, sql, path: trace.stream(Statement(sql)).write_parquet(path),
        ],
        ids=["query", "stream"],
    )
    def test_files_removed_by_a_cleaner_are_reported(self, temporary_folder, spilling, ask, tmp_path):
        shutil.rmtree(temporary_folder)
        statement = "SELECT range, hash(range) AS h FROM range(8000000) ORDER BY h"
        with pytest.raises(InsightError, match=f"something removes files in {tmp_path}") as caught:
            ask(spilling, statement, tmp_path / "x.parquet")
        assert caught.value.hint == "name a folder that nothing cleans up: TMPDIR=/path"

    @pytest.mark.slow
    def test_files_that_do_not_fit_on_the_disk_are_reported(self, trace, tmp_path):
        """Limit files to 2 MB: the error is that of a full disk."""
        code = (
            "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))\n"
            "from nsys_insight.__main__ import main; main()"
        )
        sql = "SELECT range, hash(range) AS h FROM range(8000000) ORDER BY h LIMIT 7000000"
        process = subprocess.run(
            [sys.executable, "-c", code, "sql", trace, sql, "--memory", "60MB", "--threads", "2", "--format", "csv"],
            capture_output=True, text=True, check=False, cwd=tmp_path,
        )  # fmt: skip
        assert process.returncode == 1
        assert "cannot be spilled to" in process.stderr
        assert "TMPDIR=/path" in process.stderr


def test_other_errors_are_not_explained_by_temporary_files():
    import duckdb

    assert database.explain_spill_error(duckdb.IOException("IO Error: Cannot open file trace.duckdb")) is None
    assert database.explain_spill_error(ValueError(str(cache_folder.temporary_folder()))) is None


def test_answers_are_written_in_the_folder_that_a_locked_connection_may_use(tmp_path):
    with sandbox.open_writable_path(tmp_path / "x") as inner:
        assert inner.is_relative_to(database.spill_folder())
        inner.write_text("whole")
    assert (tmp_path / "x").read_text() == "whole"
