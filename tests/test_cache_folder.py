"""The cache folder is private, and what is built in it is whole or not there."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from nsys_insight.ingest import cache_folder


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(folder))
    return folder


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
            for seconds in (120, 3 * 24 * 60 * 60):
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
