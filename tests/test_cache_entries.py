"""Entries of the cache folder: their manifests, the size limit, and locks of entries in use."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from folder_contents import list_files

import nsys_insight
from nsys_insight import cache_folder, own_files
from nsys_insight.errors import UsageError
from nsys_insight.ingest import cache_entries, store

HOUR_S = 60 * 60
DAY_S = 24 * HOUR_S
SIZE = 1000

unix_only = pytest.mark.skipif(sys.platform == "win32", reason="there an open file cannot be removed")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(tmp_path / "cache"))
    return cache_folder.folder()


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.nsys-rep"
    path.write_bytes(b"a report")
    return path


@pytest.fixture
def set_size_limit(monkeypatch):
    """Return a function that sets the size limit of the cache in bytes."""
    return lambda size: monkeypatch.setenv("NSYS_INSIGHT_CACHE_SIZE", str(size))


def make_entry(name, *files, size=SIZE, used_before_s=None, in_use=False):
    """Make an entry. By default it is unlocked afterwards."""
    target = cache_folder.folder() / f"{cache_folder.digest(name)}.duckdb"
    with cache_entries.make_entry(target, name, *files) as path:
        path.write_bytes(bytes(size))
    if not in_use:
        cache_entries._unlock_entry(target)
    if used_before_s is not None:
        age(target, used_before_s)
        # Update the fingerprint to this age; reading the entry counts as a use.
        status = target.stat()
        cache_entries.write_manifest(
            replace(cache_entries.read_manifest(target), fingerprint=cache_folder.fingerprint(target)),
            cache_entries.manifest_path(target),
        )
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    return target


def age(path, seconds):
    os.utime(path, (time.time() - seconds,) * 2)


def list_contents(folder):
    """Return the contents of the entries in the folder, the most recently used first."""
    return [entry.manifest.holds if entry.manifest else "" for entry in cache_entries.list_entries(folder)]


IMPORT_ENTRIES = "from nsys_insight.ingest import cache_entries"


def start_python(code, *arguments):
    """Start a Python process, and wait until it prints a line."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import sys, time; from nsys_insight import cache_folder\n{IMPORT_ENTRIES}\n{code}",
            *arguments,
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline()
    return process


class TestMakeEntry:
    def test_an_entry_is_private_and_names_its_trace(self, folder, trace):
        target = make_entry("facts", trace)

        assert [path.name for path in list_files(folder)] == [target.name, f"{target.name}.json"]
        assert {path.stat().st_mode & 0o777 for path in list_files(folder)} == {0o600}
        manifest = cache_entries.list_entries(folder)[0].manifest
        assert (manifest.holds, list(manifest.files), manifest.state) == ("facts", [str(trace)], "unchanged")

    def test_an_entry_made_of_another_has_the_same_trace(self, folder, trace):
        export = make_entry("export", trace)
        make_entry("facts", make_entry("copy", export))
        assert {tuple(entry.manifest.files) for entry in cache_entries.list_entries(folder)} == {(str(trace),)}

    def test_a_changed_or_removed_trace_is_reported(self, folder, trace):
        make_entry("copy", trace)
        (entry,) = cache_entries.list_entries(folder)
        trace.write_bytes(b"another")
        assert entry.manifest.state == "changed"
        trace.unlink()
        assert entry.manifest.state == "gone"

    def test_a_path_may_hold_any_bytes(self, folder, tmp_path):
        path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff \xe2\x80\xae.sqlite"))
        try:
            path.write_bytes(b"")
        except OSError:
            pytest.skip("this disk takes no such name")
        make_entry("copy", path)
        (entry,) = cache_entries.list_entries(folder)
        assert (list(entry.manifest.files), entry.manifest.state) == ([str(path)], "unchanged")

    def test_a_block_that_fails_leaves_nothing_and_removes_nothing(self, folder, set_size_limit):
        make_entry("old", used_before_s=HOUR_S)
        set_size_limit(SIZE)
        with pytest.raises(ZeroDivisionError):
            fail_while_making(folder)
        assert list_contents(folder) == ["old"]
        assert len(list_files(folder)) == 2

    @unix_only
    @pytest.mark.parametrize("published", [False, True])
    def test_files_of_a_killed_process_are_removed_later(self, folder, published):
        """Kill the process before the manifest is written, and between the manifest and the entry."""
        patch_replace = "from pathlib import Path; Path.replace = lambda *_: (print('x', flush=True), time.sleep(60))"
        if published:
            patch_replace = (
                "from pathlib import Path; old = Path.replace\n"
                "def replace(self, to):\n"
                "    if to.suffix == '.json': return old(self, to)\n"
                "    print('x', flush=True); time.sleep(60)\n"
                "Path.replace = replace"
            )
        with start_python(
            f"{patch_replace}\n"
            "with cache_entries.make_entry(cache_folder.folder() / (32 * '0' + '.duckdb'), 'killed') as path:\n"
            "    path.write_bytes(bytes(1000))"
        ) as process:
            process.kill()
        assert list_contents(folder) == []
        assert len(list_files(folder)) == 1 + published
        for path in list_files(folder):
            age(path, 120)

        make_entry("next")

        assert list_contents(folder) == ["next"]
        assert len(list_files(folder)) == 2

    def test_an_entry_that_another_process_made_first_stays(self, folder):
        target = folder / f"{cache_folder.digest('same')}.duckdb"
        with cache_entries.make_entry(target, "second") as path:
            path.write_text("second")
            with cache_entries.make_entry(target, "first") as other_path:
                other_path.write_text("first")
            inode = target.stat().st_ino

        assert (target.read_text(), target.stat().st_ino, list_contents(folder)) == ("first", inode, ["first"])

    def test_an_entry_that_was_made_during_clean_up_stays(self, folder, monkeypatch):
        target = folder / f"{cache_folder.digest('same')}.duckdb"

        def meanwhile(*_):
            monkeypatch.undo()
            with cache_entries.make_entry(target, "first") as other_path:
                other_path.write_text("first")

        monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(folder))
        monkeypatch.setattr(cache_entries, "_make_room", meanwhile)
        with cache_entries.make_entry(target, "second") as path:
            path.write_text("second")
        assert (target.read_text(), list_contents(folder)) == ("first", ["first"])

    def test_a_damaged_entry_is_replaced_even_in_use(self, folder):
        target = make_entry("damaged", in_use=True)
        assert cache_entries.use(target)
        with cache_entries.make_entry(target, "sound") as path:
            path.write_text("sound")
        assert (target.read_text(), list_contents(folder)) == ("sound", ["sound"])


def fail_while_making(folder):
    with cache_entries.make_entry(folder / f"{cache_folder.digest('new')}.duckdb", "new") as path:
        path.write_bytes(bytes(SIZE))
        raise ZeroDivisionError


@pytest.mark.usefixtures("folder")
class TestChangedEntry:
    """An entry that something else changed is not used, and is made again."""

    def make_changed_entry(self, change):
        target = make_entry("copy", size=1 << 20)
        assert cache_entries.use(target)
        cache_entries._unlock_entry(target)
        change(target)
        return target

    def write_bytes_at(self, offset, size=1):
        def change(path):
            with path.open("rb+") as stream:
                stream.seek(offset)
                stream.write(size * b"x")

        return change

    def keep_old_time(self, change):
        def change_and_restore_time(path):
            before = path.stat()
            change(path)
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

        return change_and_restore_time

    def test_a_new_time_is_detected(self, folder):
        target = self.make_changed_entry(self.write_bytes_at(4097))
        assert not cache_entries.use(target)
        assert not list_files(folder)

    @pytest.mark.parametrize("offset", [0, (1 << 20) - 1, 1 << 20])
    def test_a_change_at_the_start_or_end_or_of_the_size_is_detected(self, offset):
        assert not cache_entries.use(self.make_changed_entry(self.keep_old_time(self.write_bytes_at(offset))))

    def test_a_large_change_of_content_is_detected(self):
        assert not cache_entries.use(self.make_changed_entry(self.keep_old_time(self.write_bytes_at(100_000, 50_000))))

    def test_another_file_is_detected(self, tmp_path):
        (tmp_path / "other").write_bytes(b"x" * (1 << 20))
        assert not cache_entries.use(self.make_changed_entry((tmp_path / "other").replace))

    def test_a_missing_manifest_is_detected(self):
        assert not cache_entries.use(self.make_changed_entry(lambda path: cache_entries.manifest_path(path).unlink()))

    def test_use_is_not_a_change(self):
        target = self.make_changed_entry(cache_folder.touch)
        assert cache_entries.use(target)

    @pytest.mark.slow
    def test_answers_do_not_change(self, folder, sample):
        def count_calls():
            with nsys_insight.open(sample("churn"), use_cache=True) as trace:
                return trace.top()["calls"].sum()

        assert count_calls() == 500
        (entry,) = cache_entries.list_entries(folder)
        import duckdb

        entry.path.chmod(0o600)
        cache_entries._unlock_entry(entry.path)
        with duckdb.connect(entry.path) as database:
            database.execute("DELETE FROM copy.CUPTI_ACTIVITY_KIND_KERNEL")
        assert count_calls() == 500


class TestSizeLimit:
    def test_the_least_recently_used_entries_are_removed_first(self, folder, set_size_limit):
        for hours, name in enumerate(("newest", "new", "old", "oldest"), 1):
            make_entry(name, used_before_s=hours * HOUR_S)
        set_size_limit(3 * SIZE)
        make_entry("made")
        assert list_contents(folder) == ["made", "newest", "new"]

    def test_the_last_use_counts_not_the_creation(self, folder, set_size_limit):
        first = make_entry("first", used_before_s=2 * HOUR_S)
        make_entry("second", used_before_s=HOUR_S)
        before = cache_folder.key(first)
        assert cache_entries.use(first)
        assert cache_folder.key(first) == before  # other entries may be derived from it
        cache_entries._unlock_entry(first)
        set_size_limit(2 * SIZE)
        make_entry("third")
        assert list_contents(folder) == ["third", "first"]

    def test_entries_made_of_an_entry_are_removed_with_it(self, folder, trace, set_size_limit):
        export = make_entry("export", trace)
        make_entry("copy", export, used_before_s=HOUR_S)
        age(export, 3 * HOUR_S)
        make_entry("other", used_before_s=2 * HOUR_S)
        set_size_limit(3 * SIZE)
        make_entry("new")
        assert list_contents(folder) == ["new", "other"]

    def test_a_new_entry_stays_even_above_the_limit(self, folder, set_size_limit):
        make_entry("old", used_before_s=HOUR_S)
        set_size_limit(10)
        make_entry("large")
        assert list_contents(folder) == ["large"]

    def test_within_the_limit_nothing_is_removed(self, folder, set_size_limit):
        set_size_limit(2 * SIZE)
        make_entry("one", used_before_s=29 * DAY_S)
        make_entry("two")
        assert list_contents(folder) == ["two", "one"]

    def test_entries_unused_for_a_month_are_removed(self, folder):
        make_entry("old", used_before_s=31 * DAY_S)
        make_entry("new")
        assert list_contents(folder) == ["new"]

    def test_an_entry_of_an_earlier_version_counts_and_stays(self, folder, set_size_limit):
        """Nothing proves that it is the program's: earlier versions left no list of their files."""
        old = folder / f"{cache_folder.digest('old')}-2023.4.4.sqlite"
        old.write_bytes(bytes(SIZE))
        assert list_contents(folder) == [""]
        age(old, HOUR_S)
        set_size_limit(SIZE)
        make_entry("new")
        assert list_contents(folder) == ["new", ""]
        cache_entries.discard(old)
        assert cache_entries.remove(cache_entries.list_entries(folder), folder)[1][0].path == old
        assert old.stat().st_size == SIZE

    def test_other_files_are_left_alone(self, folder, set_size_limit, tmp_path):
        digest, outside = cache_folder.digest("x"), tmp_path / "outside.sqlite"
        outside.write_text("mine")
        (folder / f"{digest}-link.sqlite").symlink_to(outside)
        (folder / f"{digest}-folder.sqlite").mkdir()
        for name in ("thesis.tex", "trace.sqlite", digest, f"{digest}.pdf", f"{digest}.json", f"{digest}.sqlite.json"):
            (folder / name).write_text("{}")
        foreign = sorted(folder.iterdir())
        for path in foreign:
            os.utime(path, (0, 0), follow_symlinks=False)
        set_size_limit(1)

        target = make_entry("new")
        cache_entries.remove_old_markers(folder, 0)
        cache_entries.remove(cache_entries.list_entries(folder), folder)

        assert not target.exists()
        assert list_files(folder) == foreign
        assert outside.read_text() == "mine"

    @pytest.mark.parametrize(
        "content", [b"", b"[]", b"\xff", b'{"holds": 1, "files": {}, "parents": []}', b"[" * 10**5]
    )
    def test_a_damaged_manifest_only_makes_the_entry_unknown(self, folder, set_size_limit, content):
        target = make_entry("one", used_before_s=HOUR_S)
        cache_entries.manifest_path(target).write_bytes(content)
        assert list_contents(folder) == [""]
        set_size_limit(SIZE)
        make_entry("two")
        assert list_contents(folder) == ["two"]
        assert len(list_files(folder)) == 2

    def test_the_default_limit_is_a_tenth_of_the_disk_up_to_20_gib(self, folder, monkeypatch):
        class Disk:
            total = 50 * 10**9

        monkeypatch.setattr(cache_entries.shutil, "disk_usage", lambda _: Disk)
        assert cache_entries.read_size_limit(folder) == 5 * 10**9
        Disk.total = 10**15
        assert cache_entries.read_size_limit(folder) == 20 * 2**30

    def test_an_invalid_size_is_an_error_before_anything_is_made(self, folder, set_size_limit):
        set_size_limit("much")
        with pytest.raises(UsageError, match=r"\$NSYS_INSIGHT_CACHE_SIZE takes a size in bytes, not 'much'"):
            make_entry("one")
        assert not list_files(folder)


class TestClockJumps:
    def test_a_use_in_the_future_does_not_keep_an_entry_forever(self, folder, set_size_limit):
        make_entry("to come", used_before_s=-1000 * DAY_S)
        make_entry("known", used_before_s=DAY_S)
        set_size_limit(2 * SIZE)
        make_entry("new")
        assert list_contents(folder) == ["new", "known"]

    def test_a_use_in_the_future_does_not_remove_an_entry_within_the_limit(self, folder):
        make_entry("to come", used_before_s=-1000 * DAY_S)
        make_entry("new")
        assert list_contents(folder) == ["new", "to come"]

    def test_the_next_use_with_a_correct_clock_counts(self, folder, set_size_limit):
        target = make_entry("to come", used_before_s=-1000 * DAY_S)
        make_entry("known", used_before_s=DAY_S)
        cache_entries.use(target)
        cache_entries._unlock_entry(target)
        set_size_limit(2 * SIZE)
        make_entry("new")
        assert list_contents(folder) == ["new", "to come"]

    def test_a_use_by_a_clock_slightly_ahead_counts(self, folder, set_size_limit):
        make_entry("ahead", used_before_s=-HOUR_S)
        make_entry("known", used_before_s=DAY_S)
        set_size_limit(2 * SIZE)
        make_entry("new")
        assert list_contents(folder) == ["ahead", "new"]


@unix_only
class TestInUse:
    def test_an_entry_stays_while_another_process_uses_it(self, folder, set_size_limit):
        target = make_entry("used")
        using = "assert cache_entries.use(cache_folder.Path(sys.argv[1])); print('x', flush=True); time.sleep(60)"
        with start_python(using, str(target)) as process:
            age(target, 40 * DAY_S)
            set_size_limit(SIZE)
            make_entry("new")
            assert list_contents(folder) == ["new", "used"]
            removed, remaining = cache_entries.remove(cache_entries.list_entries(folder), folder)
            assert ([entry.path for entry in remaining], len(removed)) == ([target], 1)
            process.kill()
        make_entry("newer")
        assert list_contents(folder) == ["newer"]

    def test_this_process_uses_entries_that_it_made_or_opened(self, folder, set_size_limit):
        set_size_limit(1)
        first = make_entry("first", in_use=True, used_before_s=HOUR_S)
        second = make_entry("second", in_use=True, used_before_s=HOUR_S)
        assert cache_entries.use(first)
        assert cache_entries.use(first)
        make_entry("third")
        assert sorted(list_contents(folder)) == ["first", "second", "third"]
        for path in (first, second):
            cache_entries._unlock_entry(path)
        make_entry("fourth")
        assert list_contents(folder) == ["fourth"]

    def test_a_missing_entry_cannot_be_used(self, folder):
        assert not cache_entries.use(folder / f"{cache_folder.digest('none')}.duckdb")

    @pytest.mark.usefixtures("folder")
    def test_an_entry_under_removal_cannot_be_used(self):
        target = make_entry("one")
        with target.open("rb+") as stream:
            own_files.lock(stream.fileno())
            assert not cache_entries.use(target)
        assert cache_entries.use(target)

    def test_without_locks_entries_used_in_the_last_hour_stay(self, folder, set_size_limit, monkeypatch):
        monkeypatch.setattr(own_files, "lock", lambda *_, **__: None)
        make_entry("before", used_before_s=2 * HOUR_S)
        make_entry("just now", used_before_s=HOUR_S / 2)
        set_size_limit(SIZE)
        make_entry("new")
        assert list_contents(folder) == ["new", "just now"]

    @pytest.mark.slow
    def test_concurrent_processes_all_get_complete_entries(self, folder, set_size_limit):
        """Each process makes and uses entries, with room for two of six. A usable entry exists when it is opened.

        The entries in use at the end may exceed the limit. They are removed when the next entry is made.
        """
        code = """
import random, sys, time
from nsys_insight import cache_folder, own_files
from nsys_insight.ingest import cache_entries
for turn in range(60):
    name = random.choice("abcdef")
    target = cache_folder.folder() / f"{cache_folder.digest(name)}.duckdb"
    if not cache_entries.use(target):
        with cache_entries.make_entry(target, name) as path:
            path.write_text(name * 500)
            time.sleep(0.002)
    time.sleep(0.001)
    assert target.read_text() == name * 500
    cache_entries._unlock_entry(target)
"""
        set_size_limit(SIZE)
        processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
        assert [process.wait(60) for process in processes] == [0] * 4
        assert 2 <= len(list_contents(folder)) <= 2 + len(processes)
        make_entry("last")
        assert list_contents(folder) == ["last"]
        assert sorted(path.suffix for path in folder.iterdir()) == [".duckdb", ".json"]


class TestTraces:
    """Test a trace and its DuckDB copy."""

    def test_a_query_survives_the_removal_of_its_copy(self, folder, sample):
        with nsys_insight.open(sample("churn"), use_cache=True) as trace:
            kernels = trace.sql("SELECT count(*) FROM kernels")
            for path in folder.iterdir():
                path.unlink()
            assert trace.sql("SELECT count(*) FROM kernels").equals(kernels)
            assert trace.top()["calls"].sum() == 500

    @pytest.mark.slow
    def test_an_unusable_folder_is_not_needed(self, sample, tmp_path, monkeypatch):
        (tmp_path / "file").write_text("")
        for folder in (tmp_path / "file" / "below", Path("/proc")):
            monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(folder))
            with nsys_insight.open(sample("churn"), use_cache=True) as trace:
                assert trace.top()["calls"].sum() == 500

    def test_a_read_only_entry_is_read(self, folder, sample, monkeypatch):
        nsys_insight.open(sample("churn"), use_cache=True).close()
        (entry,) = cache_entries.list_entries(folder)

        def refuse_write(*_, **__):
            raise PermissionError

        monkeypatch.setattr(os, "utime", refuse_write)
        monkeypatch.setattr(cache_folder, "make_work_path", refuse_write)
        assert store.find_entry(sample("churn")) == entry.path

    @pytest.mark.slow
    def test_a_copy_above_the_limit_is_used(self, folder, sample, set_size_limit):
        set_size_limit("1kB")
        for _ in range(2):
            with nsys_insight.open(sample("churn"), use_cache=True) as trace:
                assert trace.top()["calls"].sum() == 500
        assert list_contents(folder) == ["copy, facts and answers"]
