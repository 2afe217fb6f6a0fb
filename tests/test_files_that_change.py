"""A trace that is replaced while it is open: no answer and no cached fact mixes two files."""

from __future__ import annotations

import os
import shutil
import time

import planted
import pytest

import nsys_insight
from nsys_insight import cache_folder
from nsys_insight.errors import TraceError
from nsys_insight.ingest import cache_entries, copy, sqlite_file, store
from nsys_insight.session import open_strategies
from nsys_insight.sql.statements import Statement

CHANGE_MESSAGE = r"trace\.sqlite was replaced or written to while it was being read"


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


@pytest.mark.parametrize(("report", "change"), [("top", replace), ("idle", overwrite), ("top", append)])
def test_a_changed_trace_gives_no_more_answers(path, other, change, report):
    with nsys_insight.open(path, use_cache=False) as trace:
        trace.answer("info")
        change(path, other)
        with pytest.raises(TraceError, match=CHANGE_MESSAGE):
            trace.answer(report)
    if change != append:
        with nsys_insight.open(path) as trace:
            assert trace.top()["calls"].sum() == count_calls(other)


def put_pipe(path, _):
    path.unlink()
    os.mkfifo(path)


def put_folder(path, _):
    path.unlink()
    path.mkdir()


def put_link(path, other):
    path.unlink()
    path.symlink_to(other)


@pytest.mark.parametrize("change", [put_pipe, put_folder, put_link])
def test_something_else_in_its_place_gives_no_answer(path, other, change):
    with nsys_insight.open(path, use_cache=False) as trace:
        trace.answer("info")
        change(path, other)
        with pytest.raises(TraceError, match=r"was (replaced|removed)"):
            trace.answer("top")


def test_a_part_of_a_changed_trace_is_not_opened(path, other):
    """The part would be of the new file, next to answers about the old one."""
    with nsys_insight.open(path, use_cache=False) as trace:
        trace.answer("info")
        replace(path, other)
        for open_part in (lambda: trace.scope(device=0), lambda: trace.select_trace(path)):
            with pytest.raises(TraceError, match=CHANGE_MESSAGE):
                open_part()


def test_the_changed_one_of_several_traces_is_named(path, other, tmp_path):
    second = shutil.copyfile(path, tmp_path / "second.sqlite")
    with nsys_insight.open([path, second], use_cache=False) as traces:
        traces.answer("top")
        replace(second, other)
        with pytest.raises(TraceError, match=r"second\.sqlite was replaced"):
            traces.answer("top")


@pytest.mark.parametrize("use_cache", [False, True])
def test_a_conversion_of_a_changed_trace_is_not_written(path, other, tmp_path, use_cache):
    from nsys_insight.convert.convert import convert

    with nsys_insight.open(path, use_cache=use_cache) as trace:
        trace.answer("info")
        replace(path, other)
        with pytest.raises(TraceError, match=CHANGE_MESSAGE):
            convert(trace, tmp_path / "part.sqlite", "sqlite")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["other.sqlite", "trace.sqlite"]


def test_a_stream_ends_when_its_trace_is_replaced(path, other):
    with nsys_insight.open(path, use_cache=False) as trace:
        batches = trace.stream(Statement("SELECT * FROM kernels")).batches()
        next(batches)
        replace(path, other)
        with pytest.raises(TraceError, match=CHANGE_MESSAGE):
            list(batches)


def count_calls(path):
    with nsys_insight.open(path, use_cache=False) as trace:
        return trace.top()["calls"].sum()


def test_a_removed_trace_is_reported(path):
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


def test_reading_and_permissions_are_not_a_change(path):
    with nsys_insight.open(path, use_cache=False) as trace:
        trace.answer("info")
        os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))
        path.chmod(0o444)
        assert trace.answer("top").row_count


@pytest.mark.slow
def test_a_folder_of_parquet_files_is_watched_file_by_file(path, other, tmp_path):
    from nsys_insight.convert.convert import convert

    for trace, name in ((path, "one"), (other, "two")):
        with nsys_insight.open(trace) as source:
            convert(source, tmp_path / name, "parquet")
    with nsys_insight.open(tmp_path / "one") as trace:
        trace.answer("info")
        kernels = "raw/CUPTI_ACTIVITY_KIND_KERNEL.parquet"
        (tmp_path / "two" / kernels).replace(tmp_path / "one" / kernels)
        with pytest.raises(TraceError, match="one was replaced"):
            trace.answer("top")


class TestFacts:
    @pytest.fixture(autouse=True)
    def treat_traces_as_big(self, monkeypatch):
        monkeypatch.setattr(open_strategies, "_BIG_BYTES", 0)

    def list_cached_facts(self):
        files = cache_folder.folder().glob("*.duckdb")
        return [path for path in files if not path.name.startswith("model-")]

    @pytest.mark.slow
    def test_facts_of_an_unchanged_trace_are_cached(self, path):
        with nsys_insight.open(path) as trace:
            trace.answer("idle")
        assert len(self.list_cached_facts()) == 1

    @pytest.mark.slow
    def test_facts_of_a_changed_trace_are_not_cached(self, path, other):
        with nsys_insight.open(path) as trace:
            trace.answer("idle")
            replace(path, other)
        assert not self.list_cached_facts()
        with nsys_insight.open(path) as trace, nsys_insight.open(other, use_cache=False) as reference:
            assert trace.answer("idle").rows() == reference.answer("idle").rows()

    @pytest.mark.slow
    def test_facts_are_in_memory_when_their_file_is_removed(self, path):
        with nsys_insight.open(path, use_cache=False) as reference:
            expected = reference.answer("idle").rows(), reference.answer("gaps").rows()
        with nsys_insight.open(path) as trace:
            idle = trace.answer("idle").rows()
            for folder in cache_folder.folder().glob(".nsys-insight-*"):
                shutil.rmtree(folder)
            assert (idle, trace.answer("gaps").rows()) == expected


class TestCopies:
    def test_a_copy_of_a_trace_that_changed_meanwhile_is_not_cached(self, path, other, monkeypatch):
        read_columns = sqlite_file.read_sqlite_types

        def replace_during_read(file):
            monkeypatch.undo()
            replace(path, other)
            return read_columns(file)

        monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(path.parent / "cache"))
        cache_path = os.environ["NSYS_INSIGHT_CACHE_DIR"]
        monkeypatch.setattr(copy, "read_sqlite_types", replace_during_read)
        with pytest.raises(TraceError, match=CHANGE_MESSAGE):
            store.make_copy(path)
        os.environ["NSYS_INSIGHT_CACHE_DIR"] = cache_path
        assert not cache_entries.list_entries(cache_folder.folder())
