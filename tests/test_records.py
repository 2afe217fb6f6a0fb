"""Files that others may have written, with wrong types, numbers and depths: one sentence says what is wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from command_line import run

from nsys_insight import records
from nsys_insight.bench import result
from nsys_insight.compare import baselines, budgets, runs
from nsys_insight.errors import UsageError
from nsys_insight.experiment import log
from nsys_insight.ingest import cache_entries, facts_folder
from nsys_insight.packs.pack import parse_pack
from nsys_insight.records import RecordError, make_record

DEEP = "[" * 100_000
HEADER = 'title = "T"\ndescription = "D"\nreading = "R"\nempty = "E"\n[columns]\nx = "X"\n'


@dataclass
class _Part:
    name: str
    sizes: tuple[int, ...] = ()


@dataclass
class _Table:
    ratio: float
    parts: dict[str, _Part] = field(default_factory=dict)
    note: str | None = None


def test_a_record_has_the_types_of_its_annotations():
    record = make_record(_Table, {"share": 1, "parts": {"a": {"name": "x", "sizes": [1, 2]}}}, names={"ratio": "share"})
    assert record == _Table(1, {"a": _Part("x", (1, 2))})


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ([], "it should be a table"),
        ({}, "it lacks 'ratio'"),
        ({"ratio": "1"}, "ratio should be a number"),
        ({"ratio": True}, "ratio should be a number"),
        ({"ratio": 1 << 64}, "ratio has more than 64 bits"),
        ({"ratio": 1, "more": 2}, "it has an unknown entry 'more'"),
        ({"ratio": 1, "note": 2}, "note should be a text"),
        ({"ratio": 1, "parts": {"a": {}}}, "parts.a lacks 'name'"),
        (
            {"ratio": 1, "parts": {"a": {"name": "x", "sizes": [1, None]}}},
            r"parts.a.sizes\[1\] should be an integer",
        ),
    ],
)
def test_a_wrong_record_is_described_in_a_sentence(data, sentence):
    with pytest.raises(RecordError, match=f"^{sentence}$"):
        make_record(_Table, data)


@pytest.mark.parametrize("text", [DEEP, "", "{", '{"a": 1' + "0" * 5000 + "}"])
def test_what_is_no_json_is_described(text):
    with pytest.raises(RecordError, match="it is"):
        records.parse_json(text)
    with pytest.raises(RecordError, match="it is"):
        records.parse_toml(f"a = {text}")


def _write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


RUN = {"schema": runs.SCHEMA, "label": "a", "unit": "step", "count": 2, "method": "m", "metrics": {}}


@pytest.mark.parametrize(
    "text",
    [
        DEEP,
        json.dumps({**RUN, "metrics": []}),
        json.dumps({**RUN, "metrics": {"wall_ns": {"values": "123"}}}),
        json.dumps({**RUN, "kernels": {"a": 1}}),
        json.dumps({**RUN, "count": "2"}),
        json.dumps({**RUN, "count": 1 << 70}),
        json.dumps({**RUN, "about": {"saved_at": 1, "tags": 2}}),
    ],
)
def test_a_damaged_run_is_refused(tmp_path, text):
    path = _write(tmp_path / "run.json", text)
    with pytest.raises(UsageError):
        baselines.read(path)
    outcome = run("diff", path, _write(tmp_path / "other.json", text))
    assert outcome.returncode == (0 if "about" in text else 2)  # diff does not read where a run is from
    assert "Traceback" not in outcome.stderr


def test_files_of_other_kinds_are_refused(tmp_path):
    bench = json.dumps({"schema": result.SCHEMA, "sides": [{"label": "a", "command": "b", "series": [{"name": 1}]}]})
    for text in (DEEP, bench, "[]"):
        with pytest.raises(UsageError):
            result.from_json(text, tmp_path)
    for text in (f"a = {DEEP}", 'goal = 1\ncommand = "x"', 'goal = "g"\ncommand = "x"\nhow = 1'):
        _write(tmp_path / "experiment.toml", text)
        with pytest.raises(UsageError):
            log.read(tmp_path)
    with pytest.raises(UsageError):
        budgets.from_toml(_write(tmp_path / "budgets.toml", f"[max]\na = {DEEP}"))
    for text in (DEEP, '{"schema": "nsys-insight-fleet/1", "failed": [1]}', "1"):
        _write(tmp_path / "fleet.json", text)
        assert facts_folder.read_failures(tmp_path) is None
        _write(tmp_path / "about.json", text)
        assert facts_folder.read_manifest(tmp_path) is None
        entry = _write(tmp_path / f"{'0' * 32}.duckdb", "")
        _write(cache_entries.manifest_path(entry), text)
        assert cache_entries.read_manifest(entry) is None


@pytest.mark.parametrize(
    "header",
    [
        HEADER.replace('"T"', "1"),
        HEADER.replace('"T"', '"a\\u001b[31m"'),
        HEADER.replace('x = "X"', 'x = "a\\u009b31m"'),
        HEADER.replace('x = "X"', "x = 1"),
        f"{HEADER}[params]\nn = 1",
        f'{HEADER}[params.n]\ndefault = 1\nhelp = "h"\nleast = "x"',
        f'{HEADER}[params.n]\ndefault = 99999999999999999999\nhelp = "h"',
        f'{HEADER}[params.n]\ndefault = "a"\nhelp = "h"\npattern = "("',
        f'{HEADER}[params.n]\ntype = "list"\nhelp = "h"',
        f"aliases = 3\n{HEADER}",
        f"main = {'[' * 5000}{']' * 5000}\n{HEADER}",
    ],
)
def test_a_packs_header_is_checked(tmp_path, header):
    path = _write(Path(tmp_path) / "mine.sql", f"/*\n{header}\n*/\nSELECT 1 AS x ORDER BY x")
    with pytest.raises(UsageError, match=r"the header of mine.sql is not valid"):
        parse_pack(path)
    assert "\x1b[31m" not in run("--help", env={"NSYS_INSIGHT_PACK_DIR": str(tmp_path)}).stdout
