"""The cache folder is private, and files in it are written atomically."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from folder_contents import list_files

from nsys_insight import cache_folder, own_files


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "trace.sqlite"
    path.write_bytes(bytes(1_000_000))
    return path


def age(path, seconds):
    os.utime(path, (time.time() - seconds,) * 2)


def entry(suffix=".sqlite"):
    return cache_folder.folder() / f"{cache_folder.digest('a trace')}{suffix}"


def test_the_variable_sets_the_folder_and_it_is_private(cache):
    assert cache_folder.folder() == cache
    assert cache.stat().st_mode & 0o777 == 0o700


unix_only = pytest.mark.skipif(sys.platform == "win32", reason="files have no owner there that is asked for")
root_only = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")


@unix_only
class TestUnsafeFolders:
    def check_refused(self, cache, reason):
        assert reason in cache_folder.refusal_reason()
        with pytest.raises(PermissionError, match=reason):
            cache_folder.folder()
        assert not list(cache.iterdir())

    @root_only
    def test_a_folder_of_another_user_is_refused(self, cache):
        cache.mkdir(mode=0o700)
        os.chown(cache, 12345, 12345)
        self.check_refused(cache, "it belongs to another user")

    @root_only
    def test_a_link_of_another_user_is_refused(self, cache, tmp_path):
        (tmp_path / "mine").mkdir(mode=0o700)
        cache.symlink_to(tmp_path / "mine")
        assert cache_folder.folder() == cache
        os.chown(cache, 12345, 12345, follow_symlinks=False)
        self.check_refused(cache, "it belongs to another user")

    @pytest.mark.parametrize("mode", [0o770, 0o707])
    def test_a_folder_that_others_may_write_to_is_refused(self, cache, mode):
        cache.mkdir()
        cache.chmod(mode)
        self.check_refused(cache, "other users may write to it")

    @pytest.mark.parametrize("mode", [0o770, 0o707])
    @pytest.mark.parametrize("depth", [1, 2])
    def test_a_folder_below_one_that_others_may_write_to_is_refused(self, tmp_path, monkeypatch, mode, depth):
        cache = tmp_path / "a" / "b" / "cache"
        cache.mkdir(parents=True, mode=0o700)
        monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(cache))
        assert cache_folder.folder() == cache
        cache.parents[depth - 1].chmod(mode)
        self.check_refused(cache, f"other users may write to {cache.parents[depth - 1]} above it")
        cache.parents[depth - 1].chmod(mode | 0o1000)
        assert cache_folder.folder() == cache

    def test_a_link_below_such_a_folder_or_to_one_is_refused(self, tmp_path, monkeypatch):
        for link, target in (("open/link", "closed/cache"), ("closed/link", "open/cache")):
            cache = tmp_path / link
            cache.parent.mkdir(exist_ok=True)
            (tmp_path / target).mkdir(parents=True, mode=0o700)
            cache.symlink_to(tmp_path / target)
            monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(cache))
            (tmp_path / "open").chmod(0o777)
            self.check_refused(cache, f"other users may write to {tmp_path / 'open'} above it")

    @root_only
    @pytest.mark.parametrize("mode", [0o755, 0o1777])
    def test_a_folder_below_one_of_another_user_is_refused(self, tmp_path, monkeypatch, mode):
        cache = tmp_path / "theirs" / "cache"
        cache.mkdir(parents=True, mode=0o700)
        monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(cache))
        os.chown(cache.parent, 12345, 12345)
        cache.parent.chmod(mode)
        self.check_refused(cache, f"{cache.parent} above it belongs to another user")

    def test_a_folder_that_others_may_read_is_used(self, cache):
        cache.mkdir()
        cache.chmod(0o755)
        assert cache_folder.folder() == cache


@unix_only
class TestTemporaryFolders:
    """The next process removes the folder of a killed one immediately; folders in use stay."""

    CODE = """
import sys, time
from nsys_insight import cache_folder, own_files
print(cache_folder.temporary_folder(), flush=True)
sys.stdin.read()
"""

    def start_process(self, tmp_path, code=CODE):
        return subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )  # fmt: skip

    def test_only_the_owner_can_open_it(self, tmp_path):
        process = self.start_process(tmp_path)
        folder = cache_folder.Path(process.stdout.readline().strip())
        assert folder.stat().st_mode & 0o777 == 0o700
        process.communicate()
        assert not folder.exists()

    def test_the_folder_of_a_killed_process_is_removed_by_the_next_one(self, tmp_path):
        killed, alive = self.start_process(tmp_path), self.start_process(tmp_path)
        leftover_folder, live_folder = (
            cache_folder.Path(process.stdout.readline().strip()) for process in (killed, alive)
        )
        (leftover_folder / "spill-1").mkdir()
        (leftover_folder / "spill-1" / "duckdb_temp_block-1.block").write_bytes(bytes(1000))
        killed.kill()
        killed.communicate()
        assert leftover_folder.is_dir()
        self.start_process(tmp_path).communicate()
        assert list(tmp_path.glob("nsys-insight-*")) == [live_folder]
        alive.communicate()
        assert not list(tmp_path.glob("nsys-insight-*"))

    def test_a_folder_without_a_manifest_stays_at_any_age(self, tmp_path):
        """The name of a folder proves nothing: nsys-insight-main is a clone."""
        for name, seconds in (("main", 0), ("old", 120), ("older", 10**7), ("to-come", -(10**7))):
            folder = tmp_path / f"nsys-insight-{name}"
            folder.mkdir()
            (folder / ".lock").touch()
            (folder / "thesis.tex").touch()
            age(folder, seconds)
        self.start_process(tmp_path).communicate()
        assert len(list(tmp_path.glob("nsys-insight-*/thesis.tex"))) == 4

    @root_only
    def test_a_folder_of_another_user_is_left_alone(self, tmp_path):
        folder = tmp_path / "nsys-insight-theirs"
        folder.mkdir()
        (folder / ".lock").touch()
        os.chown(folder, 12345, 12345)
        age(folder, 10**7)
        self.start_process(tmp_path).communicate()
        assert folder.is_dir()

    def test_a_planted_link_is_not_followed(self, tmp_path):
        outside = tmp_path / "mine"
        outside.mkdir()
        (outside / "thesis.tex").touch()
        (outside / ".lock").touch()
        (tmp_path / "nsys-insight-x").symlink_to(outside)
        self.start_process(tmp_path).communicate()
        assert (outside / "thesis.tex").exists()

    def test_concurrent_processes_keep_their_own_folders(self, tmp_path):
        code = """
from nsys_insight import cache_folder, own_files
cache_folder.claim_temporary("answer.parquet").touch()
"""
        processes = [self.start_process(tmp_path, code) for _ in range(8)]
        assert [(process.communicate(), process.returncode)[1] for process in processes] == [0] * 8
        assert not list(tmp_path.glob("nsys-insight-*"))


def test_without_a_cache_a_temporary_folder_lasts_as_long_as_the_process(cache, tmp_path):
    code = "from nsys_insight.cache_folder import folder\nassert folder(use_cache=False) == folder(use_cache=False)"
    command = [sys.executable, "-c", f"{code}\nprint(folder(use_cache=False), folder(use_cache=False).is_dir())"]
    temporary_folder, existed = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "TMPDIR": str(tmp_path)}
    ).stdout.split()
    assert existed == "True"
    assert not cache_folder.Path(temporary_folder).exists()
    assert not cache.exists()


def test_without_the_variable_it_is_in_the_users_cache_folder(tmp_path, monkeypatch):
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
    def test_it_is_the_same_for_all_names_of_a_file(self, file, tmp_path, monkeypatch):
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

    def test_it_changes_with_the_purpose(self, file):
        assert cache_folder.key(file, "2023.4") != cache_folder.key(file, "2024.1")
        assert cache_folder.key(file, "ab", "c") != cache_folder.key(file, "a", "bc")

    def test_a_folder_changes_with_any_file_in_it(self, tmp_path):
        folder = tmp_path / "trace_pqtdir"
        folder.mkdir()
        (folder / "a.parquet").write_bytes(b"1")
        before = cache_folder.key(folder)
        (folder / "b.parquet").write_bytes(b"2")
        assert cache_folder.key(folder) != before


class TestWriteAtomically:
    def test_the_target_appears_complete_at_the_end_and_nothing_else_remains(self, cache):
        with cache_folder.write_atomically(entry()) as path:
            path.write_text("whole")
            own_files.claim(path.with_name("scratch"))
            path.with_name("scratch").write_text("")
            assert not entry().exists()

        assert entry().read_text() == "whole"
        assert list_files(cache) == [entry()]

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    def test_an_error_keeps_the_previous_file(self, cache, error):
        entry().write_text("before")
        with pytest.raises(error), cache_folder.write_atomically(entry()) as path:
            write_and_fail(path, error)

        assert entry().read_text() == "before"
        assert list(cache.iterdir()) == [entry()]

    def test_two_writers_do_not_disturb_each_other(self, cache):
        with cache_folder.write_atomically(entry()) as first, cache_folder.write_atomically(entry()) as second:
            first.write_text("first")
            second.write_text("second")

        assert entry().read_text() == "first"  # it ended last
        assert list_files(cache) == [entry()]

    @pytest.mark.skipif(sys.platform == "win32", reason="locks are told by age alone")
    def test_work_files_of_killed_processes_are_removed_and_those_of_live_ones_stay(self, cache):
        code = (
            "import sys, time; from nsys_insight.cache_folder import folder, write_atomically\n"
            "with write_atomically(folder() / 'x') as path: print(path.parent, flush=True); time.sleep(60)"
        )
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
            work = cache_folder.Path(process.stdout.readline().strip())
            for seconds in (0, 3 * 24 * 60 * 60):
                age(work, seconds)
                with cache_folder.write_atomically(entry(".duckdb")) as path:
                    path.write_text("")
                assert work.is_dir()

            process.kill()
            process.wait()
            with cache_folder.write_atomically(entry()) as path:
                path.write_text("")
        assert list_files(cache) == [entry(".duckdb"), entry()]


def write_and_fail(path, error):
    path.write_text("half")
    raise error
