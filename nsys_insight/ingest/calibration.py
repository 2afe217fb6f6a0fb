"""What a call of CUDA takes on this machine, without nsys and under it: measured once, and stored."""

from __future__ import annotations

import json
import platform
import re
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight import cache_folder
from nsys_insight.errors import ToolError, cannot_write_error
from nsys_insight.paths import user_folder
from nsys_insight.programs import compile_c
from nsys_insight.records import RecordError, make_record, parse_json
from nsys_insight.text.units import time_text

if TYPE_CHECKING:
    from nsys_insight.ingest.nsys import Nsys

_SOURCE = Path(__file__).with_name("calibrate.c")
_HINT = "measure the program instead: nsys-insight capture --also-without, or give reports --step-time"
_TIME = re.compile(r"^(launch|memset|copy) ([\d.]+)$", re.MULTILINE)


@dataclass(frozen=True)
class Calibration:
    """The host's time per call in ns, for launches, memsets and copies: without nsys, and under it."""

    gpu: str
    nsys: str
    without_ns: dict[str, float]
    under_nsys_ns: dict[str, float]

    @property
    def sentence(self) -> str:
        """Return what nsys costs on this machine, in words."""
        times = [time_text(times_ns["launch"]) for times_ns in (self.without_ns, self.under_nsys_ns)]
        return f"on this machine, a launch takes {times[0]} without nsys, and {times[1]} under it (calibrate)"


def measure(nsys: Nsys) -> Calibration:
    """Run a program of launches, memsets and copies without nsys and under it.

    Raises:
        ToolError: There is no C compiler or no GPU, or nsys does not run the program.
    """
    with cache_folder.use_temporary_folder() as folder:
        program = str(compile_c(_SOURCE, folder.claim("calibrate"), purpose="calibrate", hint=_HINT))
        folder.claim_pattern("calibrate.*")
        output = _run([program])
        report = str(folder.path / "calibrate.nsys-rep")
        profile = [str(nsys.path), "profile", "--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none", "-o", report]
        return Calibration(
            next(iter(re.findall(r"^gpu (.+)$", output, re.MULTILINE)), ""),
            nsys.version,
            _read_times(output),
            _read_times(_run([*profile, "--force-overwrite=true", program])),
        )


def _run(command: list[str]) -> str:
    """Run the program and return what it prints.

    Raises:
        ToolError: It failed.
    """
    process = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our program, the user's nsys
    if process.returncode:
        reason = (process.stderr.strip() or process.stdout.strip() or f"exit code {process.returncode}").splitlines()
        raise ToolError(f"the calls of CUDA were not measured: {reason[-1][:200]}", _HINT)
    return process.stdout


def _read_times(output: str) -> dict[str, float]:
    times = {name: float(time) for name, time in _TIME.findall(output)}
    if "launch" not in times:
        raise ToolError("the calls of CUDA were not measured: nsys shows no output of the program", _HINT)
    return times


def location() -> Path:
    """Return where the calibration of this machine is stored: machines may share the folder."""
    return user_folder("calibration") / f"{platform.node() or 'machine'}.json"


def store(calibration: Calibration) -> Path:
    """Store the calibration of this machine, and return its file.

    Raises:
        UsageError: The file cannot be written.
    """
    path = location()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(calibration), indent=2) + "\n")
    except OSError as error:
        raise cannot_write_error(path, error) from None
    return path


def read_stored(nsys: Nsys) -> list[Calibration]:
    """Return the calibration of this machine and this nsys; none if it was not measured, or its file is damaged."""
    try:
        calibration = make_record(Calibration, parse_json(location().read_bytes()))
    except (OSError, RecordError):
        return []
    has_launches = "launch" in calibration.without_ns and "launch" in calibration.under_nsys_ns
    return [calibration] if calibration.nsys == nsys.version and has_launches else []
