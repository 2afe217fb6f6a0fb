"""A trace that is replaced while it is open: an answer is of one file, or there is none; nor are facts kept of two."""

from __future__ import annotations

import os
import shutil
import time

import planted
import pytest

import nsys_insight
from nsys_insight.errors import TraceError
from nsys_insight.ingest import cache_entries, cache_folder, copy, sqlite_file, store
from nsys_insight.session import open_strategies

CHANGED = r"trace\.sqlite was replaced or written to while it was being read"


@pytest.fixture
def path(tmp_path):
    return planted.sync_bound(steps=8).write(tmp_path / "trace.sqlite")


@pytest.fixture
def other(tmp_path):
    return planted.sync_bound(steps=30).write(tmp_path / "other.sqlite")


def replace(path, other):
    shutil.copyfile(other, new := path.with_name("new"))
    new.replace(path)


def overwrite(path, other):
    shutil.copyfile(other, path)


def append(path, _):
    with path.open("ab") as stream:
        stream.write(bytes(4096))


@pytest.mark.parametrize("change", [replace, overwrite, append])
@pytest.mark.parametrize("asked", ["top", "idle"])
def test_a_trace_that_changed_answers_nothing_more(path, other, change, asked):
    with nsys_insight.open(path, use_cache=False) as trace:
        trace.answer("info")
        change(path, other)
        with pytest.raises(TraceError, match=CHANGED):
            trace.answer(asked)
    if change != append:
        with nsys_insight.open(path) as trace:
            assert trace.top()["calls"].sum() == planted_calls(other)


def planted_calls(path):
    with nsys_insight.open(path, use_cache=False) as trace:
        return trace.top()["calls"].sum()


def test_one_that_is_removed_is_said_to_be(path):
    with nsys_insight.open(path, use_cache=False) as trace:
        trace.answer("info")
        path.unlink()
        with pytest.raises(TraceError, match="was removed while it was being read"):
            trace.answer("top")


def test_a_copy_needs_the_trace_for_its_strings(path):
    with nsys_insight.open(path, use_cache=True) as trace:
        assert trace.top()["calls"].sum()
        path.unlink()
        with pytest.raises(TraceError, match="was removed"):
            trace.answer("api")


def test_use_is_no_change(path):
    with nsys_insight.open(path, use_cache=False) as trace:
        trace.answer("info")
        os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))
        path.chmod(0o444)
        assert trace.answer("top").row_count


@pytest.mark.slow
def test_a_folder_of_parquet_files_is_watched_file_by_file(path, other, tmp_path):
    from nsys_insight.convert.convert import convert

    for trace, name in ((path, "one"), (other, "two")):
        with nsys_insight.open(trace) as opened:
            convert(opened, tmp_path / name, "parquet")
    with nsys_insight.open(tmp_path / "one") as trace:
        trace.answer("info")
        kernels = "raw/CUPTI_ACTIVITY_KIND_KERNEL.parquet"
        (tmp_path / "two" / kernels).replace(tmp_path / "one" / kernels)
        with pytest.raises(TraceError, match="one was replaced"):
            trace.answer("top")


class TestFacts:
    @pytest.fixture(autouse=True)
    def big(self, monkeypatch):
        monkeypatch.setattr(open_strategies, "_BIG", 0)

    def kept(self):
        found = cache_folder.folder().glob("*.duckdb")
        return [path for path in found if not path.name.startswith("model-")]

    @pytest.mark.slow
    def test_are_kept_of_a_trace_that_stayed(self, path):
        with nsys_insight.open(path) as trace:
            trace.answer("idle")
        assert len(self.kept()) == 1

    @pytest.mark.slow
    def test_are_not_kept_of_one_that_changed(self, path, other):
        with nsys_insight.open(path) as trace:
            trace.answer("idle")
            replace(path, other)
        assert not self.kept()
        with nsys_insight.open(path) as trace, nsys_insight.open(other, use_cache=False) as right:
            assert trace.answer("idle").rows() == right.answer("idle").rows()

    @pytest.mark.slow
    def test_are_found_in_memory_where_their_file_goes_while_it_is_open(self, path):
        with nsys_insight.open(path, use_cache=False) as right:
            expected = right.answer("idle").rows(), right.answer("gaps").rows()
        with nsys_insight.open(path) as trace:
            idle = trace.answer("idle").rows()
            for folder in cache_folder.folder().glob(".nsys-insight-*"):
                shutil.rmtree(folder)
            assert (idle, trace.answer("gaps").rows()) == expected


class TestCopies:
    def test_none_is_kept_of_a_trace_that_changed_meanwhile(self, path, other, monkeypatch):
        columns = sqlite_file.sqlite_columns

        def meanwhile(file):
            monkeypatch.undo()
            replace(path, other)
            return columns(file)

        monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(path.parent / "cache"))
        environment = os.environ["NSYS_INSIGHT_CACHE_DIR"]
        monkeypatch.setattr(copy, "sqlite_columns", meanwhile)
        with pytest.raises(TraceError, match=CHANGED):
            store.copied(path)
        os.environ["NSYS_INSIGHT_CACHE_DIR"] = environment
        assert not cache_entries.entries(cache_folder.folder())
