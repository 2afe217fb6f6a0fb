"""Conditions of a measurement: what the GPUs do (clocks, temperature, throttling, other processes), and the commit.

NVML is asked through NVIDIA's `nvidia-ml-py`, the extra `bench`. Where it or the driver is missing, nothing is known,
and one sentence says so. The user's repository is only read: not even git's index is refreshed.
"""

from __future__ import annotations

import importlib
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from nsys_insight.extras import install

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

_SAMPLE_INTERVAL_S = 0.1
# NVML's nvmlClocksEventReason… bits that slow a GPU; the others are idleness, and clocks that somebody set.
_REASONS = {
    0x4: "power limit", 0x8: "hardware slowdown", 0x20: "thermal (software)", 0x40: "thermal (hardware)",
    0x80: "power brake",
}  # fmt: skip
_UNCHECKED = "GPU clocks, temperature and other processes are not checked"


@dataclass
class Machine:
    """The GPUs of this machine.

    Attributes:
        nvml: NVIDIA's module; None where nothing is known.
        note: Why not.
    """

    nvml: Any = None
    note: str = ""
    _gpus: list[Any] = field(default_factory=list)

    @classmethod
    def detect(cls) -> Machine:
        """Find the GPUs, if NVML answers."""
        try:
            nvml = importlib.import_module("pynvml")
        except ImportError:
            return cls(note=f"{_UNCHECKED}: {install('bench')}")
        try:
            nvml.nvmlInit()
            gpus = [nvml.nvmlDeviceGetHandleByIndex(at) for at in range(nvml.nvmlDeviceGetCount())]
        except nvml.NVMLError:
            return cls(note=f"{_UNCHECKED}: no NVIDIA driver answers")
        return cls(nvml, "", gpus)

    def states(self) -> tuple[dict[str, Any], ...]:
        """How each GPU is now."""
        return tuple(self._state(at, gpu) for at, gpu in enumerate(self._gpus))

    def conditions(self) -> dict[str, str]:
        """What does not change while programs run: driver, CUDA, GPUs, and the clocks that programs ask for."""
        if not self.nvml:
            return {}
        nvml, found = self.nvml, {}
        found["driver"] = self._asked(nvml.nvmlSystemGetDriverVersion)
        version = self._asked(nvml.nvmlSystemGetCudaDriverVersion)
        found["cuda"] = f"{version // 1000}.{version % 1000 // 10}" if version else None
        names = [_text(self._asked(nvml.nvmlDeviceGetName, gpu)) for gpu in self._gpus]
        found["gpu"] = ", ".join(dict.fromkeys(filter(None, names))) + (f" x{len(names)}" if len(names) > 1 else "")
        wanted = [self._asked(nvml.nvmlDeviceGetApplicationsClock, gpu, nvml.NVML_CLOCK_SM) for gpu in self._gpus]
        found["application_clock_mhz"] = ", ".join(map(str, filter(None, wanted)))
        return {name: str(_text(value)) for name, value in found.items() if value}

    def _state(self, at: int, gpu: Any) -> dict[str, Any]:
        nvml, ask = self.nvml, self._asked
        power, memory = ask(nvml.nvmlDeviceGetPowerUsage, gpu), ask(nvml.nvmlDeviceGetMemoryInfo, gpu)
        processes = ask(nvml.nvmlDeviceGetComputeRunningProcesses, gpu)
        return {
            "gpu": at,
            "sm_mhz": ask(nvml.nvmlDeviceGetClockInfo, gpu, nvml.NVML_CLOCK_SM),
            "memory_mhz": ask(nvml.nvmlDeviceGetClockInfo, gpu, nvml.NVML_CLOCK_MEM),
            "temperature_c": ask(nvml.nvmlDeviceGetTemperature, gpu, nvml.NVML_TEMPERATURE_GPU),
            "power_w": None if power is None else power / 1000,
            "memory_used_bytes": None if memory is None else int(memory.used),
            "processes": None if processes is None else len(processes),
            "slowed_by": self._slowed(gpu),
        }

    def _slowed(self, gpu: Any) -> list[str]:
        nvml = self.nvml
        # The name until driver 535, which newer ones keep.
        bits = self._asked(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, gpu) or 0
        return [word for bit, word in _REASONS.items() if bits & bit]

    def _asked(self, call: Callable[..., Any], *given: Any) -> Any:
        """What NVML answers; None of what this GPU does not tell."""
        with suppress(self.nvml.NVMLError):
            return call(*given)
        return None

    def watched(self) -> Watch:
        """Watch the GPUs while a program runs."""
        return Watch(self)

    def _looks(self) -> Iterator[tuple[int | None, list[str]]]:
        for gpu in self._gpus:
            yield self._asked(self.nvml.nvmlDeviceGetClockInfo, gpu, self.nvml.NVML_CLOCK_SM), self._slowed(gpu)


class Watch:
    """The highest SM clock of any GPU while the block runs, and what slowed one."""

    def __init__(self, machine: Machine) -> None:
        """Watch these GPUs; if none are known, nothing is done."""
        self.clock: float | None = None
        self.slowed: set[str] = set()
        self._machine, self._over = machine, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        """Begin to watch."""
        if self._machine.nvml:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Look no more."""
        self._over.set()
        if self._machine.nvml:
            self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(_SAMPLE_INTERVAL_S):
            for clock, slowed in self._machine._looks():  # noqa: SLF001 - its own thread
                self.clock = max(filter(None, (self.clock, clock)), default=None)
                self.slowed.update(slowed)


def gpu_notes(before: tuple[dict[str, Any], ...], after: tuple[dict[str, Any], ...]) -> list[str]:
    """Notes about GPUs before and after: other processes on them, and changes of temperature."""
    sentences = []
    for old, new in zip(before, after, strict=False):
        others = max(old["processes"] or 0, new["processes"] or 0)
        if others:
            count = f"{others} other process uses" if others == 1 else f"{others} other processes use"
            sentences.append(f"{count} GPU {new['gpu']}, and may disturb the measurement")
        warmer = (new["temperature_c"] or 0) - (old["temperature_c"] or 0)
        if old["temperature_c"] is not None and abs(warmer) >= 10:
            sentences.append(f"GPU {new['gpu']} went from {old['temperature_c']} °C to {new['temperature_c']} °C")
    return sentences


def _text(value: Any) -> Any:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def git_commit(folder: Path | None = None) -> dict[str, str]:
    """The commit of the folder, with +changes if files differ from it; empty outside of a repository."""
    found = _git(["rev-parse", "--short=12", "HEAD"], folder)
    if found is None:
        return {}
    changed = _git(["status", "--porcelain", "--untracked-files=no"], folder)
    return {"commit": found.strip() + ("+changes" if changed else "")}


def git_diff(folder: Path | None = None) -> str:
    """How the files differ from the commit, as a patch; empty if they do not, or outside of a repository."""
    return _git(["diff", "HEAD", "--no-color", "--no-ext-diff", "--no-textconv"], folder) or ""


def _git(arguments: Sequence[str], folder: Path | None) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - it reads
            ["git", "--no-optional-locks", *arguments],  # noqa: S607 - the user's own git
            cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None
