"""Damaged pages of an export that is treated as a big one: rows are looked up by their numbers, and copied."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest
from command_line import run
from sweeps import sweep

from nsys_insight.session import open_strategies

PAGE = 4096


def find_root(path, table):
    with closing(sqlite3.connect(path)) as database:
        ((root,),) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchall()
    return (root - 1) * PAGE


@pytest.mark.parametrize(
    ("command", "table"),
    [
        ("gaps", "CUPTI_ACTIVITY_KIND_RUNTIME"),
        ("top", "CUPTI_ACTIVITY_KIND_KERNEL"),
        *sweep(
            (command, table)
            for command in ("gaps", "diagnose", "report", "idle", "info")
            for table in ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL", "StringIds")
        ),
    ],
)
@pytest.mark.parametrize(("offset", "value"), [(0, 255), (3, 255), (8, 255)])
def test_a_damaged_page_is_refused_in_a_sentence(sample, tmp_path, monkeypatch, *, command, table, offset, value):
    monkeypatch.setattr(open_strategies, "_BIG_BYTES", 0)
    path = tmp_path / "trace.sqlite"
    shutil.copyfile(sample("decode_eager"), path)
    content = bytearray(path.read_bytes())
    content[find_root(path, table) + offset] = value
    path.write_bytes(content)
    output = ["-o", tmp_path / "page.html"] if command == "report" else []
    outcome = run(command, path, *output)
    assert (outcome.returncode, "Traceback" in outcome.stderr) == (3, False), outcome.stderr
