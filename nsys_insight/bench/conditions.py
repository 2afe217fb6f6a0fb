"""Record the conditions of a measurement: clocks, temperature, throttling and processes of the GPUs.

NVML is called through NVIDIA's `nvidia-ml-py`, which the extra `bench` installs. Without it or the driver, the GPUs are
unknown, and a note says so.
"""

from __future__ import annotations

import importlib
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from nsys_insight.extras import write_install_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SAMPLE_INTERVAL_S = 0.1
# Bits of NVML's nvmlClocksEventReason… that mean throttling. The others mean an idle GPU, or clocks set by a user.
_THROTTLE_REASONS = {
    0x4: "power limit", 0x8: "hardware slowdown", 0x20: "thermal (software)", 0x40: "thermal (hardware)",
    0x80: "power brake",
}  # fmt: skip
_UNCHECKED = "GPU clocks, temperature and other processes are not checked"


@dataclass
class Machine:
    """The GPUs of this machine.

    Attributes:
        nvml: NVIDIA's module; None if the GPUs are unknown.
        note: The reason why they are unknown.
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
            return cls(note=f"{_UNCHECKED}: {write_install_command('bench')}")
        try:
            nvml.nvmlInit()
            gpus = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        except nvml.NVMLError:
            return cls(note=f"{_UNCHECKED}: no NVIDIA driver answers")
        return cls(nvml, "", gpus)

    def read_states(self) -> tuple[dict[str, Any], ...]:
        """Return the current state of each GPU."""
        return tuple(self._read_state(index, gpu) for index, gpu in enumerate(self._gpus))

    def read_conditions(self) -> dict[str, str]:
        """Return the fixed conditions: driver, CUDA, GPUs, and the configured application clocks."""
        if not self.nvml:
            return {}
        nvml, conditions = self.nvml, {}
        conditions["driver"] = self._query(nvml.nvmlSystemGetDriverVersion)
        version = self._query(nvml.nvmlSystemGetCudaDriverVersion)
        conditions["cuda"] = f"{version // 1000}.{version % 1000 // 10}" if version else None
        names = [_decode(self._query(nvml.nvmlDeviceGetName, gpu)) for gpu in self._gpus]
        conditions["gpu"] = ", ".join(dict.fromkeys(filter(None, names))) + (
            f" x{len(names)}" if len(names) > 1 else ""
        )
        clocks = [self._query(nvml.nvmlDeviceGetApplicationsClock, gpu, nvml.NVML_CLOCK_SM) for gpu in self._gpus]
        conditions["application_clock_mhz"] = ", ".join(map(str, filter(None, clocks)))
        return {name: str(_decode(value)) for name, value in conditions.items() if value}

    def _read_state(self, index: int, gpu: Any) -> dict[str, Any]:
        nvml, query = self.nvml, self._query
        power, memory = query(nvml.nvmlDeviceGetPowerUsage, gpu), query(nvml.nvmlDeviceGetMemoryInfo, gpu)
        processes = query(nvml.nvmlDeviceGetComputeRunningProcesses, gpu)
        return {
            "gpu": index,
            "sm_mhz": query(nvml.nvmlDeviceGetClockInfo, gpu, nvml.NVML_CLOCK_SM),
            "memory_mhz": query(nvml.nvmlDeviceGetClockInfo, gpu, nvml.NVML_CLOCK_MEM),
            "temperature_c": query(nvml.nvmlDeviceGetTemperature, gpu, nvml.NVML_TEMPERATURE_GPU),
            "power_w": None if power is None else power / 1000,
            "memory_used_bytes": None if memory is None else int(memory.used),
            "processes": None if processes is None else len(processes),
            "slowed_by": self._throttle_reasons(gpu),
        }

    def _throttle_reasons(self, gpu: Any) -> list[str]:
        nvml = self.nvml
        # The name of the function until driver 535. Newer drivers still have it.
        bits = self._query(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, gpu) or 0
        return [word for bit, word in _THROTTLE_REASONS.items() if bits & bit]

    def _query(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call NVML; return None if this GPU does not support the query."""
        with suppress(self.nvml.NVMLError):
            return call(*arguments)
        return None

    def _iter_clocks(self) -> Iterator[tuple[int | None, list[str]]]:
        for gpu in self._gpus:
            yield (
                self._query(self.nvml.nvmlDeviceGetClockInfo, gpu, self.nvml.NVML_CLOCK_SM),
                self._throttle_reasons(gpu),
            )


class GpuWatch:
    """Context manager that samples the GPUs: the highest SM clock of any GPU, and the reasons for throttling."""

    def __init__(self, machine: Machine) -> None:
        """Prepare to sample these GPUs. Unknown GPUs are not sampled."""
        self.max_clock_mhz: float | None = None
        self.throttle_reasons: set[str] = set()
        self._machine, self._stop_event = machine, threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        """Start sampling."""
        if self._machine.nvml:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop sampling."""
        self._stop_event.set()
        if self._machine.nvml:
            self._thread.join()

    def _sample(self) -> None:
        while not self._stop_event.wait(_SAMPLE_INTERVAL_S):
            for clock, reasons in self._machine._iter_clocks():  # noqa: SLF001 - its own thread
                self.max_clock_mhz = max(filter(None, (self.max_clock_mhz, clock)), default=None)
                self.throttle_reasons.update(reasons)


def describe_gpu_changes(before: tuple[dict[str, Any], ...], after: tuple[dict[str, Any], ...]) -> list[str]:
    """Describe what may disturb the measurement: other processes on the GPUs, and changes of temperature."""
    sentences = []
    for old, new in zip(before, after, strict=False):
        process_count = max(old["processes"] or 0, new["processes"] or 0)
        if process_count:
            subject = (
                f"{process_count} other process uses" if process_count == 1 else f"{process_count} other processes use"
            )
            sentences.append(f"{subject} GPU {new['gpu']}, and may disturb the measurement")
        temperature_rise = (new["temperature_c"] or 0) - (old["temperature_c"] or 0)
        if old["temperature_c"] is not None and abs(temperature_rise) >= 10:
            sentences.append(f"GPU {new['gpu']} went from {old['temperature_c']} °C to {new['temperature_c']} °C")
    return sentences


def _decode(value: Any) -> Any:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
