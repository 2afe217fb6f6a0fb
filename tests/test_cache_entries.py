"""What the cache folder holds is known, stays within a size, and is there as long as somebody uses it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import nsys_insight
from nsys_insight.errors import UsageError
from nsys_insight.ingest import cache_entries, cache_folder, store

HOUR_S = 60 * 60
DAY_S = 24 * HOUR_S
SIZE = 1000

unix_alone = pytest.mark.skipif(sys.platform == "win32", reason="there an open file cannot be removed")


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
def at_most(monkeypatch):
    """Allow so many bytes."""
    return lambda size: monkeypatch.setenv("NSYS_INSIGHT_CACHE_SIZE", str(size))


def made(name, *files, size=SIZE, used_before_s=None, in_use=False):
    """Make an entry, which nobody uses any more."""
    target = cache_folder.folder() / f"{cache_folder.digest(name)}.duckdb"
    with cache_entries.making(target, name, *files) as path:
        path.write_bytes(bytes(size))
    if not in_use:
        cache_entries._let_go(target)
    if used_before_s is not None:
        age(target, used_before_s)
        # As if it had been made then; to read it counts as a use.
        status = target.stat()
        cache_entries.write_about(
            replace(cache_entries.read_about(target), seal=cache_folder.seal(target)), cache_entries.beside(target)
        )
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    return target


def age(path, seconds):
    os.utime(path, (time.time() - seconds,) * 2)


def there(folder):
    """What the entries in the folder hold, those used last first."""
    return [entry.about.holds if entry.about else "" for entry in cache_entries.entries(folder)]


def python(code, *arguments):
    """Start a process, and wait until it prints a line."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import sys, time\nfrom nsys_insight.ingest import cache_entries, cache_folder\n{code}",
            *arguments,
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline()
    return process


class TestMaking:
    def test_an_entry_is_private_and_says_what_it_is_of(self, folder, trace):
        target = made("facts", trace)

        assert sorted(path.name for path in folder.iterdir()) == [target.name, f"{target.name}.json"]
        assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
        about = cache_entries.entries(folder)[0].about
        assert (about.holds, list(about.files), about.state) == ("facts", [str(trace)], "unchanged")

    def test_one_made_of_another_is_of_the_same_trace(self, folder, trace):
        export = made("export", trace)
        made("facts", made("copy", export))
        assert {tuple(entry.about.files) for entry in cache_entries.entries(folder)} == {(str(trace),)}

    def test_a_trace_may_change_and_go(self, folder, trace):
        made("copy", trace)
        (entry,) = cache_entries.entries(folder)
        trace.write_bytes(b"another")
        assert entry.about.state == "changed"
        trace.unlink()
        assert entry.about.state == "gone"

    def test_a_path_may_hold_any_bytes(self, folder, tmp_path):
        path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff \xe2\x80\xae.sqlite"))
        try:
            path.write_bytes(b"")
        except OSError:
            pytest.skip("this disk takes no such name")
        made("copy", path)
        (entry,) = cache_entries.entries(folder)
        assert (list(entry.about.files), entry.about.state) == ([str(path)], "unchanged")

    def test_a_block_that_fails_leaves_nothing_and_removes_nothing(self, folder, at_most):
        made("old", used_before_s=HOUR_S)
        at_most(SIZE)
        with pytest.raises(ZeroDivisionError):
            failing(folder)
        assert there(folder) == ["old"]
        assert len(list(folder.iterdir())) == 2

    @unix_alone
    @pytest.mark.parametrize("published", [False, True])
    def test_a_process_killed_meanwhile_leaves_nothing_that_stays(self, folder, published):
        """Before the entry is there, and between what is said about it and the entry."""
        replace = "from pathlib import Path; Path.replace = lambda *_: (print('x', flush=True), time.sleep(60))"
        if published:
            replace = (
                "from pathlib import Path; old = Path.replace\n"
                "def replace(self, to):\n"
                "    if to.suffix == '.json': return old(self, to)\n"
                "    print('x', flush=True); time.sleep(60)\n"
                "Path.replace = replace"
            )
        with python(
            f"{replace}\n"
            "with cache_entries.making(cache_folder.folder() / (32 * '0' + '.duckdb'), 'killed') as path:\n"
            "    path.write_bytes(bytes(1000))"
        ) as process:
            process.kill()
        assert there(folder) == []
        assert len(list(folder.iterdir())) == 1 + published
        for path in folder.iterdir():
            age(path, 120)

        made("next")

        assert there(folder) == ["next"]
        assert len(list(folder.iterdir())) == 2

    def test_what_another_process_made_meanwhile_and_may_use_stays(self, folder):
        target = folder / f"{cache_folder.digest('same')}.duckdb"
        with cache_entries.making(target, "second") as path:
            path.write_text("second")
            with cache_entries.making(target, "first") as other:
                other.write_text("first")
            inode = target.stat().st_ino

        assert (target.read_text(), target.stat().st_ino, there(folder)) == ("first", inode, ["first"])

    def test_also_when_it_was_put_there_while_room_was_made(self, folder, monkeypatch):
        target = folder / f"{cache_folder.digest('same')}.duckdb"

        def meanwhile(*_):
            monkeypatch.undo()
            with cache_entries.making(target, "first") as other:
                other.write_text("first")

        monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(folder))
        monkeypatch.setattr(cache_entries, "_make_room", meanwhile)
        with cache_entries.making(target, "second") as path:
            path.write_text("second")
        assert (target.read_text(), there(folder)) == ("first", ["first"])

    def test_a_damaged_one_is_replaced_though_it_is_in_use(self, folder):
        target = made("damaged", in_use=True)
        assert cache_entries.use(target)
        with cache_entries.making(target, "sound") as path:
            path.write_text("sound")
        assert (target.read_text(), there(folder)) == ("sound", ["sound"])


def failing(folder):
    with cache_entries.making(folder / f"{cache_folder.digest('new')}.duckdb", "new") as path:
        path.write_bytes(bytes(SIZE))
        raise ZeroDivisionError


@pytest.mark.usefixtures("folder")
class TestAnEntryThatSomethingElseChanged:
    """It is none, and is made again."""

    def poisoned(self, change):
        target = made("copy", size=1 << 20)
        assert cache_entries.use(target)
        cache_entries._let_go(target)
        change(target)
        return target

    def changed(self, at, size=1):
        def change(path):
            with path.open("rb+") as stream:
                stream.seek(at)
                stream.write(size * b"x")

        return change

    def with_its_old_time(self, change):
        def and_back(path):
            before = path.stat()
            change(path)
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

        return and_back

    def test_by_its_time(self, folder):
        target = self.poisoned(self.changed(4097))
        assert not cache_entries.use(target)
        assert not list(folder.iterdir())

    @pytest.mark.parametrize("at", [0, (1 << 20) - 1, 1 << 20])
    def test_by_how_it_begins_or_ends_and_its_size_where_its_time_is_as_before(self, at):
        assert not cache_entries.use(self.poisoned(self.with_its_old_time(self.changed(at))))

    def test_by_its_content_where_much_of_that_is_another(self):
        assert not cache_entries.use(self.poisoned(self.with_its_old_time(self.changed(100_000, 50_000))))

    def test_by_another_file_in_its_place(self, tmp_path):
        (tmp_path / "other").write_bytes(b"x" * (1 << 20))
        assert not cache_entries.use(self.poisoned((tmp_path / "other").replace))

    def test_by_that_nothing_is_known_of_it(self):
        assert not cache_entries.use(self.poisoned(lambda path: cache_entries.beside(path).unlink()))

    def test_not_by_its_use(self):
        target = self.poisoned(cache_folder.touch)
        assert cache_entries.use(target)

    @pytest.mark.slow
    def test_the_trace_is_answered_as_before(self, folder, sample):
        def calls():
            with nsys_insight.open(sample("churn"), use_cache=True) as trace:
                return trace.top()["calls"].sum()

        assert calls() == 500
        (entry,) = cache_entries.entries(folder)
        import duckdb

        entry.path.chmod(0o600)
        cache_entries._let_go(entry.path)
        with duckdb.connect(entry.path) as database:
            database.execute("DELETE FROM copy.CUPTI_ACTIVITY_KIND_KERNEL")
        assert calls() == 500


class TestRoom:
    def test_what_was_used_last_goes_last(self, folder, at_most):
        for hours, name in enumerate(("newest", "new", "old", "oldest"), 1):
            made(name, used_before_s=hours * HOUR_S)
        at_most(3 * SIZE)
        made("made")
        assert there(folder) == ["made", "newest", "new"]

    def test_use_counts_and_not_when_it_was_made(self, folder, at_most):
        first = made("first", used_before_s=2 * HOUR_S)
        made("second", used_before_s=HOUR_S)
        before = cache_folder.key(first)
        assert cache_entries.use(first)
        assert cache_folder.key(first) == before  # others may rest on it
        cache_entries._let_go(first)
        at_most(2 * SIZE)
        made("third")
        assert there(folder) == ["third", "first"]

    def test_what_was_made_of_an_entry_goes_with_it(self, folder, trace, at_most):
        export = made("export", trace)
        made("copy", export, used_before_s=HOUR_S)
        age(export, 3 * HOUR_S)
        made("other", used_before_s=2 * HOUR_S)
        at_most(3 * SIZE)
        made("new")
        assert there(folder) == ["new", "other"]

    def test_the_one_just_made_stays_though_it_is_larger_than_all_may_be(self, folder, at_most):
        made("old", used_before_s=HOUR_S)
        at_most(10)
        made("large")
        assert there(folder) == ["large"]

    def test_within_the_size_nothing_goes(self, folder, at_most):
        at_most(2 * SIZE)
        made("one", used_before_s=29 * DAY_S)
        made("two")
        assert there(folder) == ["two", "one"]

    def test_what_was_not_used_for_a_month_goes(self, folder):
        made("old", used_before_s=31 * DAY_S)
        made("new")
        assert there(folder) == ["new"]

    def test_one_of_an_earlier_version_counts_and_goes(self, folder, at_most):
        old = folder / f"{cache_folder.digest('old')}-2023.4.4.sqlite"
        old.write_bytes(bytes(SIZE))
        assert there(folder) == [""]
        age(old, HOUR_S)
        at_most(SIZE)
        made("new")
        assert there(folder) == ["new"]

    def test_files_of_somebody_else_are_left_alone(self, folder, at_most, tmp_path):
        digest, outside = cache_folder.digest("x"), tmp_path / "outside.sqlite"
        outside.write_text("mine")
        (folder / f"{digest}-link.sqlite").symlink_to(outside)
        (folder / f"{digest}-folder.sqlite").mkdir()
        for name in ("thesis.tex", "trace.sqlite", digest, f"{digest}.pdf", f"{digest}.json", f"{digest}.sqlite.json"):
            (folder / name).write_text("{}")
        foreign = sorted(folder.iterdir())
        for path in foreign:
            os.utime(path, (0, 0), follow_symlinks=False)
        at_most(1)

        target = made("new")
        cache_entries.forget(folder, 0)
        cache_entries.remove(cache_entries.entries(folder), folder)

        assert not target.exists()
        assert sorted(folder.iterdir()) == foreign
        assert outside.read_text() == "mine"

    @pytest.mark.parametrize(
        "content", [b"", b"[]", b"\xff", b'{"holds": 1, "files": {}, "parents": []}', b"[" * 10**5]
    )
    def test_a_damaged_file_about_an_entry_makes_it_unknown_and_no_more(self, folder, at_most, content):
        target = made("one", used_before_s=HOUR_S)
        cache_entries.beside(target).write_bytes(content)
        assert there(folder) == [""]
        at_most(SIZE)
        made("two")
        assert there(folder) == ["two"]
        assert len(list(folder.iterdir())) == 2

    def test_by_default_a_tenth_of_the_disk_is_allowed_and_20_gib_at_most(self, folder, monkeypatch):
        class Disk:
            total = 50 * 10**9

        monkeypatch.setattr(cache_entries.shutil, "disk_usage", lambda _: Disk)
        assert cache_entries.most_bytes(folder) == 5 * 10**9
        Disk.total = 10**15
        assert cache_entries.most_bytes(folder) == 20 * 2**30

    def test_a_size_that_is_none_is_told_before_anything_is_made(self, folder, at_most):
        at_most("much")
        with pytest.raises(UsageError, match=r"\$NSYS_INSIGHT_CACHE_SIZE takes a size in bytes, not 'much'"):
            made("one")
        assert not list(folder.iterdir())


class TestAClockThatJumped:
    def test_a_use_to_come_does_not_keep_an_entry_for_ever(self, folder, at_most):
        made("to come", used_before_s=-1000 * DAY_S)
        made("known", used_before_s=DAY_S)
        at_most(2 * SIZE)
        made("new")
        assert there(folder) == ["new", "known"]

    def test_nor_does_it_remove_one_for_which_there_is_room(self, folder):
        made("to come", used_before_s=-1000 * DAY_S)
        made("new")
        assert there(folder) == ["new", "to come"]

    def test_the_next_use_by_a_clock_that_is_right_counts(self, folder, at_most):
        target = made("to come", used_before_s=-1000 * DAY_S)
        made("known", used_before_s=DAY_S)
        cache_entries.use(target)
        cache_entries._let_go(target)
        at_most(2 * SIZE)
        made("new")
        assert there(folder) == ["new", "to come"]

    def test_a_clock_a_little_ahead_as_of_another_machine_counts(self, folder, at_most):
        made("ahead", used_before_s=-HOUR_S)
        made("known", used_before_s=DAY_S)
        at_most(2 * SIZE)
        made("new")
        assert there(folder) == ["ahead", "new"]


@unix_alone
class TestInUse:
    def test_what_another_process_uses_stays_until_it_ends(self, folder, at_most):
        target = made("used")
        using = "assert cache_entries.use(cache_folder.Path(sys.argv[1])); print('x', flush=True); time.sleep(60)"
        with python(using, str(target)) as process:
            age(target, 40 * DAY_S)
            at_most(SIZE)
            made("new")
            assert there(folder) == ["new", "used"]
            gone, kept = cache_entries.remove(cache_entries.entries(folder), folder)
            assert ([entry.path for entry in kept], len(gone)) == ([target], 1)
            process.kill()
        made("newer")
        assert there(folder) == ["newer"]

    def test_this_process_uses_what_it_made_and_what_it_found(self, folder, at_most):
        at_most(1)
        first = made("first", in_use=True, used_before_s=HOUR_S)
        second = made("second", in_use=True, used_before_s=HOUR_S)
        assert cache_entries.use(first)
        assert cache_entries.use(first)
        made("third")
        assert sorted(there(folder)) == ["first", "second", "third"]
        for path in (first, second):
            cache_entries._let_go(path)
        made("fourth")
        assert there(folder) == ["fourth"]

    def test_what_is_not_there_cannot_be_used(self, folder):
        assert not cache_entries.use(folder / f"{cache_folder.digest('none')}.duckdb")

    @pytest.mark.usefixtures("folder")
    def test_what_is_being_removed_cannot_be_used(self):
        target = made("one")
        with target.open("rb+") as stream:
            cache_folder.lock(stream.fileno())
            assert not cache_entries.use(target)
        assert cache_entries.use(target)

    def test_where_locks_do_not_work_what_was_used_in_the_last_hour_stays(self, folder, at_most, monkeypatch):
        monkeypatch.setattr(cache_folder, "lock", lambda *_, **__: None)
        made("before", used_before_s=2 * HOUR_S)
        made("just now", used_before_s=HOUR_S / 2)
        at_most(SIZE)
        made("new")
        assert there(folder) == ["new", "just now"]

    @pytest.mark.slow
    def test_many_processes_at_once_all_get_an_entry_that_is_whole(self, folder, at_most):
        """Each makes and uses entries, with room for two of six: what one may use is there when it opens it.

        What all of them use last may be more than there is room for; it goes when the next entry is made.
        """
        code = """
import random, sys, time
from nsys_insight.ingest import cache_entries, cache_folder
for turn in range(60):
    name = random.choice("abcdef")
    target = cache_folder.folder() / f"{cache_folder.digest(name)}.duckdb"
    if not cache_entries.use(target):
        with cache_entries.making(target, name) as path:
            path.write_text(name * 500)
            time.sleep(0.002)
    time.sleep(0.001)
    assert target.read_text() == name * 500
    cache_entries._let_go(target)
"""
        at_most(SIZE)
        processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
        assert [process.wait(60) for process in processes] == [0] * 4
        assert 2 <= len(there(folder)) <= 2 + len(processes)
        made("last")
        assert there(folder) == ["last"]
        assert sorted(path.suffix for path in folder.iterdir()) == [".duckdb", ".json"]


class TestTraces:
    """The same with a trace and its DuckDB copy."""

    def test_a_query_survives_that_its_copy_goes(self, folder, sample):
        with nsys_insight.open(sample("churn"), use_cache=True) as trace:
            kernels = trace.sql("SELECT count(*) FROM kernels")
            for path in folder.iterdir():
                path.unlink()
            assert trace.sql("SELECT count(*) FROM kernels").equals(kernels)
            assert trace.top()["calls"].sum() == 500

    @pytest.mark.slow
    def test_a_folder_that_takes_nothing_is_done_without(self, sample, tmp_path, monkeypatch):
        (tmp_path / "file").write_text("")
        for where in (tmp_path / "file" / "below", Path("/proc")):
            monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(where))
            with nsys_insight.open(sample("churn"), use_cache=True) as trace:
                assert trace.top()["calls"].sum() == 500

    def test_one_that_can_only_be_read_is_read(self, folder, sample, monkeypatch):
        nsys_insight.open(sample("churn"), use_cache=True).close()
        (entry,) = cache_entries.entries(folder)

        def read_only(*_, **__):
            raise PermissionError

        monkeypatch.setattr(os, "utime", read_only)
        monkeypatch.setattr(cache_folder, "working", read_only)
        assert store.find(sample("churn")) == entry.path

    @pytest.mark.slow
    def test_a_copy_within_a_size_that_is_smaller_is_used(self, folder, sample, at_most):
        at_most("1kB")
        for _ in range(2):
            with nsys_insight.open(sample("churn"), use_cache=True) as trace:
                assert trace.top()["calls"].sum() == 500
        assert there(folder) == ["copy, facts and answers"]
