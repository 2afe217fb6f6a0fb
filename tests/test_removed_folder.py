"""A command whose working folder was removed works, or says so in one sentence."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import PROCESS

SAMPLE = Path(__file__).parents[1] / "sample_traces" / "decode_eager.sqlite"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not remove a folder that is in use")
@pytest.mark.parametrize("arguments", [("sql", SAMPLE, "SELECT 1"), ("nvtx", "trace.sqlite"), ("top", SAMPLE)])
def test_the_reason_is_the_folder(tmp_path, arguments):
    folder = tmp_path / "removed"
    folder.mkdir()
    command = shlex.join([*PROCESS, *map(str, arguments)])
    result = subprocess.run(
        ["sh", "-c", f"rmdir {shlex.quote(str(folder))} && exec {command}"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if result.returncode:
        assert result.returncode == 2
        assert result.stderr.splitlines() == [
            "error: the folder in which the command was started was removed",
            "hint: cd to a folder that exists: cd ~",
        ]
    else:
        assert result.stdout
