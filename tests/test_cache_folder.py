"""The cache folder is private, and what is built in it is whole or not there."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from nsys_insight.ingest import cache_folder


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "trace.sqlite"
    path.write_bytes(bytes(1_000_000))
    return path


def age(path, seconds):
    os.utime(path, (time.time() - seconds,) * 2)


def entry(suffix=".sqlite"):
    return cache_folder.folder() / f"{cache_folder.digest('a trace')}{suffix}"


def test_the_folder_is_where_the_variable_says_and_private(cache):
    assert cache_folder.folder() == cache
    assert cache.stat().st_mode & 0o777 == 0o700


of_unix = pytest.mark.skipif(sys.platform == "win32", reason="files have no owner there that is asked for")
as_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")


@of_unix
class TestAFolderThatIsNotTheUsersAlone:
    def refused(self, cache, why):
        assert why in cache_folder.refusal()
        with pytest.raises(PermissionError, match=why):
            cache_folder.folder()
        assert not list(cache.iterdir())

    @as_root
    def test_one_of_another_user(self, cache):
        cache.mkdir(mode=0o700)
        os.chown(cache, 12345, 12345)
        self.refused(cache, "it belongs to another user")

    @as_root
    def test_a_link_that_another_user_planted(self, cache, tmp_path):
        (tmp_path / "mine").mkdir(mode=0o700)
        cache.symlink_to(tmp_path / "mine")
        assert cache_folder.folder() == cache
        os.chown(cache, 12345, 12345, follow_symlinks=False)
        self.refused(cache, "it belongs to another user")

    @pytest.mark.parametrize("mode", [0o770, 0o707])
    def test_one_that_others_may_write_to(self, cache, mode):
        cache.mkdir()
        cache.chmod(mode)
        self.refused(cache, "other users may write to it")

    def test_one_that_they_may_read_will_do(self, cache):
        cache.mkdir()
        cache.chmod(0o755)
        assert cache_folder.folder() == cache


@of_unix
class TestTemporaryFolders:
    """What a killed process left is removed by the next, at once; what another works in stays."""

    CODE = """
import sys, time
from nsys_insight.ingest import cache_folder
print(cache_folder.temporary(), flush=True)
sys.stdin.read()
"""

    def started(self, tmp_path, code=CODE):
        return subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )  # fmt: skip

    def test_only_its_user_can_open_it(self, tmp_path):
        process = self.started(tmp_path)
        folder = cache_folder.Path(process.stdout.readline().strip())
        assert folder.stat().st_mode & 0o777 == 0o700
        process.communicate()
        assert not folder.exists()

    def test_a_killed_process_s_goes_with_the_next_one(self, tmp_path):
        killed, alive = self.started(tmp_path), self.started(tmp_path)
        left, used = (cache_folder.Path(process.stdout.readline().strip()) for process in (killed, alive))
        (left / "spill").write_bytes(bytes(1000))
        killed.kill()
        killed.communicate()
        assert left.is_dir()
        self.started(tmp_path).communicate()
        assert list(tmp_path.glob("nsys-insight-*")) == [used]
        alive.communicate()
        assert not list(tmp_path.glob("nsys-insight-*"))

    def test_one_without_a_lock_goes_when_it_is_old_by_whatever_clock(self, tmp_path):
        for name, seconds in (("new", 0), ("old", 120), ("to-come", -(10**7))):
            folder = tmp_path / f"nsys-insight-{name}"
            folder.mkdir()
            age(folder, seconds)
        self.started(tmp_path).communicate()
        assert [path.name for path in tmp_path.glob("nsys-insight-*")] == ["nsys-insight-new"]

    @as_root
    def test_that_of_another_user_is_left_alone(self, tmp_path):
        folder = tmp_path / "nsys-insight-theirs"
        folder.mkdir()
        (folder / ".lock").touch()
        os.chown(folder, 12345, 12345)
        age(folder, 10**7)
        self.started(tmp_path).communicate()
        assert folder.is_dir()

    def test_a_planted_link_is_not_followed(self, tmp_path):
        outside = tmp_path / "mine"
        outside.mkdir()
        (outside / "thesis.tex").touch()
        (outside / ".lock").touch()
        (tmp_path / "nsys-insight-x").symlink_to(outside)
        self.started(tmp_path).communicate()
        assert (outside / "thesis.tex").exists()

    def test_many_that_begin_and_end_at_once_keep_theirs(self, tmp_path):
        code = """
from nsys_insight.ingest import cache_folder
folder = cache_folder.temporary()
(folder / "spill").touch()
"""
        processes = [self.started(tmp_path, code) for _ in range(16)]
        assert [(process.communicate(), process.returncode)[1] for process in processes] == [0] * 16
        assert not list(tmp_path.glob("nsys-insight-*"))


def test_a_temporary_one_stands_for_it_and_goes_with_the_process(cache, tmp_path):
    code = "from nsys_insight.ingest.cache_folder import folder\nassert folder(lasting=False) == folder(lasting=False)"
    command = [sys.executable, "-c", f"{code}\nprint(folder(lasting=False), folder(lasting=False).is_dir())"]
    made, was_there = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "TMPDIR": str(tmp_path)}
    ).stdout.split()
    assert was_there == "True"
    assert not cache_folder.Path(made).exists()
    assert not cache.exists()


def test_without_the_variable_it_is_the_user_s_cache_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("NSYS_INSIGHT_CACHE_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))

    assert cache_folder.folder().is_relative_to(tmp_path)
    assert cache_folder.folder().name == "nsys-insight"


def test_a_user_without_a_home_folder_gets_no_folder_named_tilde(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cache_folder, "location", lambda: cache_folder.Path("~/.cache/nsys-insight"))

    with pytest.raises(OSError, match="no home folder"):
        cache_folder.folder()
    assert not any(tmp_path.iterdir())


class TestKey:
    def test_it_stays_the_same_for_the_same_file_by_whatever_name(self, file, tmp_path, monkeypatch):
        link = tmp_path / "link.sqlite"
        link.symlink_to(file)
        monkeypatch.chdir(tmp_path)

        assert len({cache_folder.key(path) for path in (file, link, cache_folder.Path(file.name))}) == 1

    @pytest.mark.parametrize("offset", [0, 999_999])
    def test_it_changes_with_the_content_though_size_and_time_stay(self, file, offset):
        before, times = cache_folder.key(file), file.stat()
        with file.open("rb+") as stream:
            stream.seek(offset)
            stream.write(b"x")
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))

        assert cache_folder.key(file) != before

    def test_it_changes_with_the_time_of_change(self, file):
        before = cache_folder.key(file)
        age(file, 5)
        assert cache_folder.key(file) != before

    def test_it_changes_with_what_is_made_of_the_file(self, file):
        assert cache_folder.key(file, "2023.4") != cache_folder.key(file, "2024.1")
        assert cache_folder.key(file, "ab", "c") != cache_folder.key(file, "a", "bc")

    def test_a_folder_changes_with_any_file_in_it(self, tmp_path):
        folder = tmp_path / "trace_pqtdir"
        folder.mkdir()
        (folder / "a.parquet").write_bytes(b"1")
        before = cache_folder.key(folder)
        (folder / "b.parquet").write_bytes(b"2")
        assert cache_folder.key(folder) != before


class TestBuilding:
    def test_the_target_appears_whole_at_the_end_and_nothing_else_stays(self, cache):
        with cache_folder.building(entry()) as path:
            path.write_text("whole")
            (path.parent / "scratch").write_text("")
            assert not entry().exists()

        assert entry().read_text() == "whole"
        assert list(cache.iterdir()) == [entry()]

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    def test_an_error_leaves_what_was_there_before(self, cache, error):
        entry().write_text("before")
        with pytest.raises(error), cache_folder.building(entry()) as path:
            interrupted(path, error)

        assert entry().read_text() == "before"
        assert list(cache.iterdir()) == [entry()]

    def test_two_at_once_do_not_disturb_each_other(self, cache):
        with cache_folder.building(entry()) as first, cache_folder.building(entry()) as second:
            first.write_text("first")
            second.write_text("second")

        assert entry().read_text() == "first"  # it ended last
        assert list(cache.iterdir()) == [entry()]

    @pytest.mark.skipif(sys.platform == "win32", reason="locks are told by age alone")
    def test_what_a_killed_process_left_is_removed_by_the_next_and_what_a_live_one_builds_is_not(self, cache):
        code = (
            "import sys, time; from nsys_insight.ingest.cache_folder import building, folder\n"
            "with building(folder() / 'x') as path: print(path.parent, flush=True); time.sleep(60)"
        )
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
            work = cache_folder.Path(process.stdout.readline().strip())
            for seconds in (0, 3 * 24 * 60 * 60):
                age(work, seconds)
                with cache_folder.building(entry(".duckdb")) as path:
                    path.write_text("")
                assert work.is_dir()

            process.kill()
            process.wait()
            with cache_folder.building(entry()) as path:
                path.write_text("")
        assert sorted(cache.iterdir()) == [entry(".duckdb"), entry()]


def interrupted(path, error):
    path.write_text("half")
    raise error
