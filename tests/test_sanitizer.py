"""The output of compute-sanitizer for tests/data/sanitizer/planted.cu on an H200, parsed by kernel and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsys_insight.bench import sanitizer
from nsys_insight.programs import CommandResult

DATA = Path(__file__).parent / "data" / "sanitizer"
SOURCE = (DATA / "planted.cu").read_text().splitlines()


@pytest.mark.parametrize(
    ("tool", "total", "kind", "kernel", "code"),
    [
        ("memcheck", 6, "Invalid __global__ write of size 4 bytes", "void beyond<float>(T1 *, int)", "out[at] = T(1)"),
        ("racecheck", 1, "Race reported between Write access", "race(int *)", "sum[threadIdx.x] ="),
        (
            "initcheck", 64, "Uninitialized __global__ memory read of size 4 bytes",
            "uninitialized(const int *, int *)", "in[threadIdx.x] + 1",
        ),
        ("synccheck", 16, "Barrier error detected. Invalid arguments", "wrong_mask(int *)", "__syncwarp("),
    ],
)  # fmt: skip
def test_each_tool_finds_its_planted_error(tool, total, kind, kernel, code):
    report = sanitizer.parse((DATA / f"{tool}.txt").read_text(), tool)
    first = report.errors[0]
    assert (report.total, report.is_clean) == (total, False)
    assert (first.kind, first.kernel, first.file) == (kind, kernel, "planted.cu")
    assert first.count == {"initcheck": 64, "synccheck": 16}.get(tool, 1)
    assert code in SOURCE[first.line - 1]
    assert f"{kind} at planted.cu:{first.line} in " in report.message
    assert not [
        error for error in report.errors[1:] if error.kernel
    ]  # only the calls that fail because of the first error


def test_a_program_without_errors_is_clean_and_one_that_ended_early_is_not():
    clean = sanitizer.parse((DATA / "clean.txt").read_text(), "memcheck")
    assert (clean.is_clean, clean.errors, clean.message) == (True, (), "memcheck: no errors")
    crashed = sanitizer.parse("========= COMPUTE-SANITIZER\nSegmentation fault\n", "memcheck")
    assert (crashed.is_clean, crashed.total) == (False, None)
    assert crashed.message.startswith("memcheck did not finish")


def test_output_of_older_tools_and_of_code_without_lines():
    text = """\
========= Invalid __global__ read of size 8
=========     at 0x00000780 in /src/app.cu:42:kernel(float*, int)
========= Uninitialized __global__ memory read of size 4 bytes
=========     at 0x20 in plain(int*, int*)
========= Warning: Race reported between Write access at twice(int *)+0x150
=========     and Read access at twice(int *)+0x160 [4 hazards]
========= Error: Race reported between Write access at 0x460 in app.cu:41
=========     and Read access at 0x7a0 in app.cu:51 [508 hazards]
========= ERROR SUMMARY: 3 errors
========= ERROR SUMMARY: 669 errors were not printed. Use --print-limit option
"""
    report = sanitizer.parse(text, "memcheck")
    assert report.total == 3
    assert {(error.kernel, error.file, error.line, error.is_warning) for error in report.errors} == {
        ("kernel(float*, int)", "app.cu", 42, False), ("plain(int*, int*)", None, None, False),
        ("twice(int *)", None, None, True), (None, "app.cu", 41, False),
    }  # fmt: skip


def test_the_four_tools_run_one_after_the_other(monkeypatch):
    def run_tool(command, _):
        return CommandResult(0, (DATA / f"{command[2]}.txt").read_text(), "", 1.0)

    monkeypatch.setattr(sanitizer.programs, "find_tool", lambda _: "compute-sanitizer")
    monkeypatch.setattr(sanitizer.programs, "run", run_tool)
    assert [(report.tool, report.total) for report in sanitizer.run("./planted")] == [
        ("memcheck", 6), ("racecheck", 1), ("initcheck", 64), ("synccheck", 16),
    ]  # fmt: skip
