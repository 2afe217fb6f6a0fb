"""A program's marks without nsys: a library that CUDA and NVTX load writes them down. No GPU is needed."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import run
from opening import only_rules, open_trace
from synthetic import Trace

from nsys_insight.cli.commands.capture import _explain_unmeasurable
from nsys_insight.errors import ToolError
from nsys_insight.ingest.marks import Interval, measure_marks, period_ns
from nsys_insight.paths import read_query

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("cc"), reason="the library is compiled with cc"
)
REPORT = Path(__file__).parents[1] / "sample_traces" / "decode_eager.nsys-rep"
# NVTX as a program has it: tables of pointers to its function pointers, which the library fills.
NVTX_PROGRAM = """
import ctypes as c, os, sys, time
slots = {1: [c.c_void_p() for _ in range(16)], 5: [c.c_void_p() for _ in range(16)]}
tables = {number: (c.c_void_p * 16)(*(c.addressof(slot) for slot in table)) for number, table in slots.items()}
@c.CFUNCTYPE(c.c_int, c.c_int, c.POINTER(c.c_void_p), c.POINTER(c.c_uint))
def find_table(number, table, size):
    table[0], size[0] = c.addressof(tables[number]), 16
    return 1
class Callbacks(c.Structure):
    _fields_ = [("size", c.c_size_t), ("find_table", type(find_table))]
callbacks = Callbacks(16, find_table)
find_export = c.CFUNCTYPE(c.c_void_p, c.c_uint32)(lambda number: c.addressof(callbacks))
c.CDLL(os.environ["NVTX_INJECTION64_PATH"]).InitializeInjectionNvtx2(find_export)
push = c.CFUNCTYPE(c.c_int, c.c_char_p)(slots[1][9].value)
pop = c.CFUNCTYPE(c.c_int)(slots[1][11].value)
times = open(__file__ + ".times", "w")
for name, seconds in [(b"warm-up", 0.05), (b"decode", 0.02), (b"decode", 0.02), (b"decode", 0.02), (b"decoder", 0.05)]:
    before = time.monotonic_ns(); push(name); push(b"layer"); begin = time.monotonic_ns(); time.sleep(seconds)
    end = time.monotonic_ns(); pop(); pop(); print(before, begin, end, time.monotonic_ns(), file=times)
"""
# CUDA as a program has it: the driver loads the library, and CUPTI calls back.
CUPTI = """
static void (*on_call)(void*, int, unsigned, const int*);
static int enabled[1000];
int cuptiSubscribe(void** handle, void (*function)(void*, int, unsigned, const int*), void* data) {
  (void)data; *handle = 0; on_call = function; return 0;
}
int cuptiEnableCallback(unsigned is_on, void* handle, int domain, unsigned call) {
  (void)handle; enabled[call] = is_on && domain == 1; return 0;
}
void call_driver(unsigned call) {
  int enter = 0, leave = 1;
  if (enabled[call]) { on_call(0, 1, call, &enter); on_call(0, 1, call, &leave); }
}
"""
CUDA_PROGRAM = """
import ctypes as c, os, sys, time
driver = c.CDLL(sys.argv[1], mode=c.RTLD_GLOBAL)
c.CDLL(os.environ["CUDA_INJECTION64_PATH"]).InitializeInjection()
time.sleep(0.05)
before = time.monotonic_ns()
driver.call_driver(308)
time.sleep(0.03)
driver.call_driver(307)
driver.call_driver(309)
open(__file__ + ".times", "w").write(str(time.monotonic_ns() - before))
time.sleep(0.05)
"""


def write_program(folder, text):
    path = folder / "program.py"
    path.write_text(text)
    return [sys.executable, str(path)]


def test_ranges_of_one_name_are_timed(tmp_path):
    """On a busy machine a range takes longer, so the program writes down how long each took."""
    intervals = measure_marks(write_program(tmp_path, NVTX_PROGRAM), "decode")
    times = [list(map(int, line.split())) for line in (tmp_path / "program.py.times").read_text().splitlines()]
    assert len(intervals) == 3
    for interval, (before, begin, end, after) in zip(intervals, times[1:4], strict=True):
        assert 20e6 <= end - begin <= interval.duration_ns <= after - before
    pairs = list(itertools.pairwise(times[1:4]))
    shortest_ns = min(next_before - begin for (_, begin, *_), (next_before, *_) in pairs)
    longest_ns = max(next_begin - before for (before, *_), (_, next_begin, *_) in pairs)
    assert 20e6 <= shortest_ns <= period_ns(intervals) <= longest_ns


def test_the_profiler_api_is_timed_through_cupti(tmp_path):
    (tmp_path / "cupti.c").write_text(CUPTI)
    library = tmp_path / "libcupti.so.13"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-Wl,-soname,libcupti.so.13", "-o", library, tmp_path / "cupti.c"], check=True
    )
    program = [*write_program(tmp_path, CUDA_PROGRAM), str(library)]
    (interval,) = measure_marks(program, "cudaProfilerApi")
    assert 30e6 <= interval.duration_ns <= int((tmp_path / "program.py.times").read_text())


def test_a_program_without_marks_is_an_error(tmp_path):
    with pytest.raises(ToolError, match="was not seen to call a range 'epoch'") as error:
        measure_marks(write_program(tmp_path, NVTX_PROGRAM), "epoch")
    assert "--step-time-from" in error.value.hint
    with pytest.raises(ToolError, match="ended with exit code 3"):
        measure_marks(["sh", "-c", "exit 3"], "epoch")


def test_the_time_between_steps_belongs_to_them():
    intervals = [Interval(start, start + 5) for start in (0, 10, 20, 45)]
    assert period_ns(intervals) == 10
    assert period_ns(intervals[:1]) == 5


def test_capture_takes_the_time_of_a_step_from_the_marks(tmp_path):
    """The sample's steps are its ranges `decode_step`: 2.68 ms under nsys, and about 1.1 ms in the program."""
    tool = tmp_path / "nsys"
    tool.write_text(f"""#!/bin/sh
if [ "$1" = --version ]; then echo "NVIDIA Nsight Systems version 2025.3.1.90"; exit; fi
while [ "$1" != -o ]; do shift; done
cp {REPORT} "$2"
sleep 0.02
cp {REPORT.with_suffix(".sqlite")} "${{2%.nsys-rep}}.sqlite"
""")
    tool.chmod(0o755)
    program = write_program(tmp_path, NVTX_PROGRAM.replace("0.02", "0.001").replace('b"decode"', 'b"decode_step"'))
    for _ in range(5):  # on a busy machine, a step can take longer than under nsys in the trace
        with only_rules():
            result = run(
                "capture", "--also-without", "--", *program, cwd=tmp_path, env={"NSYS_INSIGHT_NSYS": str(tool)}
            )
        assert result.returncode == 0, result.stderr
        if step_time := re.search(r"without nsys, a step takes ([12]\.\d+ ms)", result.stderr):
            break
    assert step_time
    text = f"2.68 ms per step under nsys; about {step_time[1]} without (measured)"
    assert text in " ".join(result.stdout.split())


def test_steps_of_several_ranges_are_not_measured(tmp_path):
    captured = tmp_path / "captured.sqlite"
    trace = Trace()
    host = trace.thread()
    for _ in range(3):
        for name in ("forward", "backward"):
            with host.nvtx(name):
                host.launch(name, runs=20_000).sync("stream")
    trace.write(captured)
    with open_trace(captured) as session:
        (row,) = session.rows(read_query("internal/cli/captured_steps"))
    reason = _explain_unmeasurable(row, None)
    assert reason == "each of its steps has several NVTX ranges (forward, backward); put one around them"


def test_only_one_way_to_measure_is_allowed(tmp_path):
    result = run("capture", "--also-without", "--step-time-from", "(.*)", "--", "true", cwd=tmp_path)
    assert result.returncode == 2
    assert "--also-without and --step-time-from measure the same" in result.stderr
