"""The call chains of a few calls, looked up among those of all."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opening import open_trace as opened

import nsys_insight
from nsys_insight.facts import few_callers
from nsys_insight.ingest import cache, chain_rows, extension, page_search, ways
from nsys_insight.ingest.attach import attach_sqlite
from nsys_insight.ingest.database import connect
from tests.conftest import REPOSITORY

DECODE = REPOSITORY / "tests/data/chains/decode_cpu.sqlite"
COLUMNS = "id, symbol, module, unresolved, stackDepth"
REPORTS = ("syncs", "mallocs", "copies", "gaps", "gap-places")


@pytest.fixture
def few_are_many(monkeypatch):
    """Let chains be looked up in a small trace, too."""
    monkeypatch.setattr(chain_rows, "BIG", 0)
    monkeypatch.setattr(chain_rows, "_FEWEST", 0)


def table(path, rows):
    """A SQLite file of chains: rows as (row number, id, depth)."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA page_size = 512")  # so that there are many
        database.execute(
            f"CREATE TABLE CUDA_CALLCHAINS ({', '.join(f'{name} INTEGER' for name in COLUMNS.split(', '))})"
        )
        database.executemany(
            f"INSERT INTO CUDA_CALLCHAINS (rowid, {COLUMNS}) VALUES (?, ?, 1, 2, NULL, ?)", rows
        )  # fmt: skip
    return path


def looked_up(path, wanted):
    """What is found of chains, (id, depth) by (id, depth); None where all are to be read."""
    with connect() as connection:
        connection.execute("CREATE SCHEMA internal")
        source = attach_sqlite(connection, path)
        if not chain_rows.look_up(connection, source, f"SELECT unnest({sorted(wanted)}::BIGINT[])"):
            return None
        rows = connection.execute("SELECT id, stackDepth FROM internal.chain_rows").fetchall()
    return sorted(row for row in rows if row[0] in wanted)


chains = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 12)), min_size=1, max_size=60)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chains=chains, every=st.integers(1, 9), data=st.data())
def test_of_chains_in_order_all_frames_are_found(tmp_path, few_are_many, chains, every, data):
    ids = [sum(step for step, _ in chains[: at + 1]) for at in range(len(chains))]
    frames = [(number, depth) for number, (_, depths) in zip(ids, chains, strict=True) for depth in range(depths)]
    wanted = data.draw(st.sets(st.sampled_from(ids), min_size=1))
    path = table(tmp_path / "chains.sqlite", [(7 + at, *frame) for at, frame in enumerate(frames)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_search, "_EVERY", every)
        patch.setattr(page_search, "_AT_ONCE", 3)
        assert looked_up(path, wanted) == sorted(frame for frame in frames if frame[0] in wanted)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chains=chains, data=st.data())
def test_of_chains_in_any_order_all_frames_are_found_or_none(tmp_path, few_are_many, chains, data):
    """Some frames are missing, and there are holes between the rows; but those of a chain are neighbours."""
    order = data.draw(st.permutations(range(len(chains))) | st.just(range(len(chains))))
    turn = data.draw(st.sampled_from([1, -1]))
    frames = [(at, depth) for at in order for depth in range(chains[at][1])[::turn]]
    kept = [frame for frame in frames if data.draw(st.integers(0, 30))] or frames
    steps = data.draw(st.lists(st.sampled_from([1, 1, 1, 5]), min_size=len(kept), max_size=len(kept)))
    numbers = [sum(steps[: at + 1]) for at in range(len(kept))]
    wanted = data.draw(st.sets(st.integers(0, len(chains)), min_size=1))
    path = table(tmp_path / "chains.sqlite", [(number, *frame) for number, frame in zip(numbers, kept, strict=True)])
    assert looked_up(path, wanted) in (None, sorted(frame for frame in kept if frame[0] in wanted))


def answers(path, **how):
    """The answers by caller; sums of fractions differ by the order of what is added, in their last digits."""
    with nsys_insight.open(path, **{"use_cache": False} | how) as trace:
        return [
            (
                [[float(f"{cell:.12g}") if isinstance(cell, float) else cell for cell in row] for row in answer.rows()],
                answer.notes,
            )
            for report in REPORTS
            for answer in (trace.answer(report, group_by=by) for by in ("caller", "stack"))
        ]


SHUFFLED = f"""
    CREATE TABLE other AS SELECT {COLUMNS} FROM CUDA_CALLCHAINS ORDER BY rowid * 7919 % 25357;
    DELETE FROM CUDA_CALLCHAINS; INSERT INTO CUDA_CALLCHAINS ({COLUMNS}) SELECT {COLUMNS} FROM other"""
CHANGES = {
    "as it is": "SELECT 1",
    "chains in another order": f"{SHUFFLED} ORDER BY 5003 * id % 839, stackDepth",
    "frames in another order": SHUFFLED,
    "frames are missing": "DELETE FROM CUDA_CALLCHAINS WHERE rowid % 97 = 0",
    "chains are missing": "DELETE FROM CUDA_CALLCHAINS WHERE id % 50 = 3",
    "only launches have chains": """
        UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET callchainId = NULL
        WHERE nameId NOT IN (SELECT id FROM StringIds WHERE value LIKE 'cudaLaunch%')""",
    "chains name nothing": """
        UPDATE CUDA_CALLCHAINS SET symbol = (SELECT id FROM StringIds WHERE value = 'cudaLaunchKernel')""",
    "a symbol that only others resolve": """
        UPDATE CUDA_CALLCHAINS SET unresolved = 1 WHERE id IN (
            SELECT callchainId FROM CUPTI_ACTIVITY_KIND_RUNTIME
            WHERE nameId IN (SELECT id FROM StringIds WHERE value LIKE 'cudaStreamSynchronize%')
        )""",
    "without the column unresolved": "ALTER TABLE CUDA_CALLCHAINS DROP COLUMN unresolved",
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_callers_are_those_that_all_chains_tell(tmp_path, few_are_many, monkeypatch, change):
    path = tmp_path / "trace.sqlite"
    shutil.copyfile(DECODE, path)
    with closing(sqlite3.connect(path)) as database:
        database.executescript(change)
    found = answers(path)
    monkeypatch.setattr(chain_rows, "look_up", lambda *_: False)
    assert answers(path) == found
    monkeypatch.setattr(few_callers, "_IN_DOUBT", "SELECT 1")  # so that all chains are read
    assert answers(path) == found


def test_they_are_looked_up_where_they_are_in_order(few_are_many, monkeypatch):
    found = []
    look_up = chain_rows.look_up
    monkeypatch.setattr(chain_rows, "look_up", lambda *how: found.append(look_up(*how)) or found[-1])
    answers(DECODE)
    assert found == [True, True]
    with opened(DECODE) as trace:
        assert trace.answer("syncs", group_by="caller").rows()
        ((frames,),) = trace.query("SELECT count(*) FROM facts.few_callers").rows()
    assert frames == 36


@pytest.mark.usefixtures("few_are_many")
class TestLeanCopies:
    """Steps are found in a copy of a big export, which leaves the chains where they are."""

    @pytest.fixture(autouse=True)
    def everything_is_big(self, monkeypatch, tmp_path):
        monkeypatch.setattr(ways, "_BIG", 0)
        monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", str(tmp_path / "cache"))

    def test_answers_are_the_same_and_those_of_all_calls_too(self):
        expected = answers(DECODE, use_cache=True)
        for copy in cache.entry(DECODE).parent.glob("*.duckdb"):
            copy.unlink()
        assert answers(DECODE, use_cache=None) == expected
        assert cache.find(DECODE) == cache.entry(DECODE, part="few")
        for cached in (False, None, True):
            with nsys_insight.open(DECODE, use_cache=cached) as trace:
                rows = [trace.answer(report, group_by="stack").rows() for report in ("launch-census", "host", "api")]
                assert bool(trace._connection._files._ways.cached)
                stacks = trace.query("SELECT of, count(*) FROM call_frames GROUP BY of ORDER BY of").rows()
            expected = expected if cached else (rows, stacks)
            assert (rows, stacks) == expected

    def test_a_whole_copy_is_preferred_and_has_all(self):
        cache.build(DECODE, part="few")
        assert cache.find(DECODE) == cache.entry(DECODE, part="few")
        cache.build(DECODE)
        assert cache.find(DECODE) == cache.entry(DECODE)

    def test_without_the_extension_it_is_copied_whole(self, monkeypatch):
        expected = answers(DECODE, use_cache=None)
        assert cache.find(DECODE) == cache.entry(DECODE, part="few")
        monkeypatch.setattr(extension, "scanner", lambda: None)
        assert answers(DECODE, use_cache=None) == expected
        assert cache.find(DECODE) == cache.entry(DECODE)
