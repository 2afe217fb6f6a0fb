"""`calibrate` times calls of CUDA without nsys and under it, and stores the times. A stand-in for CUDA needs no GPU."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import run

from nsys_insight.errors import ToolError
from nsys_insight.ingest import calibration
from nsys_insight.ingest.nsys import Nsys

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("cc"), reason="the program is compiled with cc"
)
REPORT = Path(__file__).parents[1] / "sample_traces" / "decode_eager.nsys-rep"
# Calls take 4 µs under nsys; without it, a launch takes 2 µs and other calls 1 µs.
CUDA = """
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static int spin(long ns) {
  struct timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  if (getenv("FAKE_NSYS")) ns = 4000;
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < ns);
  return 0;
}
int cuInit(unsigned flags) { (void)flags; return getenv("FAKE_NO_GPU") ? 100 : 0; }
int cuDeviceGet(int* device, int number) { *device = number; return 0; }
int cuDeviceGetName(char* name, int size, int device) { (void)size; (void)device; strcpy(name, "Test GPU"); return 0; }
int cuDevicePrimaryCtxRetain(void** context, int device) { (void)device; *context = 0; return 0; }
int cuCtxSetCurrent(void* context) { (void)context; return 0; }
int cuModuleLoadData(void** module, const char* text) { *module = 0; return strstr(text, ".entry nothing") ? 0 : 200; }
int cuModuleGetFunction(void** f, void* m, const char* name) { (void)m; *f = 0; return strcmp(name, "nothing"); }
int cuMemAlloc_v2(uint64_t* memory, size_t size) { (void)size; *memory = 0; return 0; }
int cuMemAllocHost_v2(void** memory, size_t size) { *memory = malloc(size); return 0; }
int cuLaunchKernel(void) { return spin(2000); }
int cuMemsetD8Async(void) { return spin(1000); }
int cuMemcpyHtoDAsync_v2(void) { return spin(1000); }
int cuCtxSynchronize(void) { return 0; }
"""
NSYS = f"""#!/bin/sh
if [ "$1" = --version ]; then echo "NVIDIA Nsight Systems version 2025.3.1.90"; exit; fi
while [ "$1" != -o ]; do shift; done
out=$2; shift 2
[ "$1" != --force-overwrite=true ] || shift
FAKE_NSYS=1 "$@" || exit
cp {REPORT} "$out"; sleep 0.02; cp {REPORT.with_suffix(".sqlite")} "${{out%.nsys-rep}}.sqlite"
"""


@pytest.fixture
def environment(tmp_path):
    """Return an environment that selects the stand-ins for CUDA and nsys."""
    (tmp_path / "cuda.c").write_text(CUDA)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", tmp_path / "libcuda.so.1", tmp_path / "cuda.c"], check=True)
    (tmp_path / "nsys").write_text(NSYS)
    (tmp_path / "nsys").chmod(0o755)
    return {
        "NSYS_INSIGHT_NSYS": str(tmp_path / "nsys"),
        "LD_LIBRARY_PATH": str(tmp_path),
        "NSYS_INSIGHT_CALIBRATION_DIR": str(tmp_path / "stored"),
    }


def test_the_calls_are_timed_and_stored_and_capture_shows_them(tmp_path, environment):
    result = run("calibrate", cwd=tmp_path, env=environment)
    assert result.returncode == 0, result.stderr
    assert re.search(r"^launch +[\d.]+ µs +[\d.]+ µs$", result.stdout, re.MULTILINE)
    (path,) = (tmp_path / "stored").iterdir()
    assert f"stored in {path}" in result.stderr
    times = json.loads(path.read_text())
    assert (times["gpu"], times["nsys"]) == ("Test GPU", "2025.3.1.90")
    assert times["without_ns"].keys() == times["under_nsys_ns"].keys() == {"launch", "memset", "copy"}
    # A busy machine takes longer, not shorter.
    assert times["without_ns"]["launch"] >= 2_000
    assert times["without_ns"]["memset"] < 4_000 <= min(times["under_nsys_ns"].values())
    output = run("capture", "--no-diagnose", "--", "true", cwd=tmp_path, env=environment)
    assert re.search(r"a launch takes [\d.]+ µs without nsys, and [\d.]+ µs under it", output.stderr)
    # Another nsys costs something else, and a damaged file says nothing.
    path.write_text(path.read_text().replace("2025.3.1.90", "2026.1.1.1"))
    assert "a launch takes" not in run("capture", "--no-diagnose", "--", "true", cwd=tmp_path, env=environment).stderr
    path.write_text("{")
    assert "a launch takes" not in run("capture", "--no-diagnose", "--", "true", cwd=tmp_path, env=environment).stderr


def test_without_a_gpu_it_says_what_else_can_be_measured(tmp_path, environment):
    result = run("calibrate", cwd=tmp_path, env=environment | {"FAKE_NO_GPU": "1"})
    assert result.returncode == 4
    assert "the calls of CUDA were not measured: cuInit returned error 100" in result.stderr
    assert "hint: measure the program instead: nsys-insight capture --also-without" in result.stderr
    assert not (tmp_path / "stored").exists()


def test_without_a_compiler_it_says_so(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(ToolError, match="calibrate needs Linux and a C compiler"):
        calibration.measure(Nsys(Path("nsys"), "2025.3"))
