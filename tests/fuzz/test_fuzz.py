"""Broken traces: the corpus of edits that once found a bug, and a few new ones. `just fuzz` tries thousands."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import edits
import folders
import pytest
import surroundings
from bases import BASES, write_base
from judge import SUMS_QUERY, Commands, Outcome, judge_edits, judge_folder
from sweeps import sweep

_FILES = sorted((Path(__file__).parent / "corpus").glob("*.json"))
CORPUS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in _FILES}
# These answer many reports at once.
SLOW_COMMANDS = ("diagnose", "host")
DEFAULT_SEEDS = 2


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    with Commands(folder) as commands:
        yield commands


@pytest.fixture(scope="module")
def base(commands):
    return {name: write_base(name, commands.folder / f"{name}.sqlite") for name in BASES}


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(entry, id=name, marks=pytest.mark.slow if entry["command"][0] in SLOW_COMMANDS else ())
        for name, entry in CORPUS.items()
        if "base" in entry
    ],
)
def test_edits_of_the_corpus_find_no_fault(commands, base, broken):
    fault, _ = judge_edits(
        commands, base[broken["base"]], broken["edits"], tuple(broken["command"]), broken.get("user_files")
    )
    assert not fault


@pytest.mark.parametrize("seed", [*range(DEFAULT_SEEDS), *sweep(range(DEFAULT_SEEDS, 12))])
def test_random_edits_find_no_fault(commands, base, seed):
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    name = chance.choice(list(BASES))
    edit_list, user_files = edits.draw_edits(base[name], chance), surroundings.draw(chance)
    for command in (
        ("top", "--format", "json", "--limit", "0"),
        (chance.choice(["idle", "info", "nvtx"]),),
    ):
        fault, _ = judge_edits(commands, base[name], edit_list, command, user_files)
        assert not fault, f"{name}: {json.dumps([edit_list, user_files])}"


@pytest.fixture(scope="module")
def facts(commands, base):
    """Write the facts of a base trace to a folder."""
    target = commands.folder / "facts"
    assert commands.run("fleet", str(base["everything"]), "-o", str(target), "--workers", "1").code == 0
    return target / "everything.facts"


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, entry in CORPUS.items() if "folder" in entry])
def test_edits_of_a_folder_of_the_corpus_find_no_fault(commands, base, facts, name):
    edit_list, command, user_files = CORPUS[name]["edits"], (*CORPUS[name]["command"],), CORPUS[name].get("user_files")
    fault, _ = judge_folder(commands, base["everything"], facts, edit_list, command, user_files)
    assert not fault


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_random_edits_of_a_folder_find_no_fault(commands, base, facts, seed):
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    edit_list = folders.draw_folder_edits(chance)
    for command in (("sql", SUMS_QUERY, "--format", "json"), ("host",)):
        fault, _ = judge_folder(commands, base["everything"], facts, edit_list, command)
        assert not fault, json.dumps(edit_list)


class TestTheJudge:
    """Check the judge itself: a judge without faults would make the fuzz run useless."""

    def outcome(self, **changes):
        return Outcome(
            **{"arguments": ("info",), "code": 0, "seconds": 1, "peak_mb": 90, "out": "", "err": "", **changes}
        )

    @pytest.mark.parametrize(
        "changes",
        [
            {"code": -9},
            {"code": 99, "err": "Traceback (most recent call last):"},
            {"code": 2, "err": "error: no such option"},
            {"code": 1, "err": "error: Binder Error\nLINE 1: FROM kernels"},
            {"code": 3, "err": ""},
            {"peak_mb": 2_000},
            {"change": "changed home/thesis.tex"},
        ],
    )
    def test_finds_fault(self, tmp_path, changes):
        assert self.outcome(**changes).fault(tmp_path)

    def test_finds_no_fault_in_a_good_outcome(self, tmp_path):
        assert not self.outcome().fault(tmp_path)
        assert not self.outcome(code=3, err="error: x is empty").fault(tmp_path)

    def test_accepts_that_settings_are_rejected(self, tmp_path):
        assert not self.outcome(code=2, err="error: /x/nsys-insight.toml is not valid: …").fault(tmp_path)

    @pytest.mark.parametrize(
        ("change", "fault"),
        [
            (lambda place: (place / "tmp" / "run" / "thesis.tex").write_text("x"), "changed tmp/run/thesis.tex"),
            (lambda place: os.utime(place / "cache" / "fleet.json", (0, 0)), "changed cache/fleet.json"),
            (lambda place: (place / "home" / "thesis.tex").unlink(), "removed home/thesis.tex"),
            (lambda place: (place / "out" / "x").mkdir(), "made out/x"),
            (lambda place: (place / "cache" / "x").touch(), "made cache/x"),
            (lambda place: (place / "out" / "answer.csv").touch(), ""),
        ],
    )
    def test_compares_the_files_of_the_user(self, tmp_path, change, fault):
        surroundings.write(tmp_path, [["file", "tmp", "run/thesis.tex", "mine"], ["file", "cache", "fleet.json", "{}"]])
        before = surroundings.read(tmp_path)
        change(tmp_path)
        change_text = surroundings.find_change(before, surroundings.read(tmp_path), "out/answer.csv")
        assert change_text.partition(",")[0] == fault

    def test_an_entry_of_the_cache_is_on_a_list(self, commands, base):
        fault, outcome = judge_edits(commands, base["sync_bound"], [], ("top", "--cache"))
        assert not fault
        assert not outcome.change

    @pytest.mark.slow
    def test_compares_sums(self, commands, base):
        outcome = commands.run("top", str(base["everything"]), "--format", "json", "--limit", "0")
        assert not outcome.fault(base["everything"])
        assert "SQLite" in outcome.fault(base["sync_bound"])
