"""Traces broken in every way: what once broke something, and some that nobody has seen. `just fuzz` tries thousands."""

from __future__ import annotations

import json
import random
from pathlib import Path

import edits
import pytest
from bases import BASES, written
from judge import Commands, Outcome, judged
from sweeps import sweep

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.json"))
FEW = 2


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    with Commands(folder, NSYS_INSIGHT_CACHE_DIR=str(folder / "cache")) as commands:
        yield commands


@pytest.fixture(scope="module")
def base(commands):
    return {name: written(name, commands.folder / f"{name}.sqlite") for name in BASES}


@pytest.mark.parametrize("entry", CORPUS, ids=lambda path: path.stem)
def test_what_broke_something_once(commands, base, entry):
    broken = json.loads(entry.read_text(encoding="utf-8"))
    fault, _ = judged(commands, base[broken["base"]], broken["edits"], tuple(broken["command"]))
    assert not fault


@pytest.mark.parametrize("seed", [*range(FEW), *sweep(range(FEW, 12))])
def test_something_new(commands, base, seed):
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    name = chance.choice(list(BASES))
    made = edits.drawn(base[name], chance)
    for command in (
        ("top", "--format", "json", "--limit", "0"),
        (chance.choice(["diagnose", "idle", "info", "nvtx"]),),
    ):
        fault, _ = judged(commands, base[name], made, command)
        assert not fault, f"{name}: {json.dumps(made)}"


class TestTheJudge:
    """A judge that finds no fault with anything would find none in the fuzz run either."""

    def outcome(self, **changes):
        return Outcome(
            **{"arguments": ("info",), "code": 0, "seconds": 1, "megabytes": 90, "out": "", "err": "", **changes}
        )

    @pytest.mark.parametrize(
        "changes",
        [
            {"code": -9},
            {"code": 99, "err": "Traceback (most recent call last):"},
            {"code": 2, "err": "error: no such option"},
            {"code": 1, "err": "error: Binder Error\nLINE 1: FROM kernels"},
            {"code": 3, "err": ""},
            {"megabytes": 2_000},
        ],
    )
    def test_finds_fault(self, tmp_path, changes):
        assert self.outcome(**changes).fault(tmp_path)

    def test_finds_none_where_all_is_well(self, tmp_path):
        assert not self.outcome().fault(tmp_path)
        assert not self.outcome(code=3, err="error: x is empty").fault(tmp_path)

    @pytest.mark.slow
    def test_compares_sums(self, commands, base):
        asked = commands.run("top", str(base["everything"]), "--format", "json", "--limit", "0")
        assert not asked.fault(base["everything"])
        assert "SQLite" in asked.fault(base["sync_bound"])
