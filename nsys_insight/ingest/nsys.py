"""The user's own nsys: where it is, and which version."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from nsys_insight.errors import ToolError
from nsys_insight.paths import expanded

NSYS_VARIABLE = "NSYS_INSIGHT_NSYS"

_EXECUTABLE = "nsys.exe" if sys.platform == "win32" else "nsys"
# An install carries an nsys for every machine that can be profiled from it; these are the ones that run here.
_TARGETS = {
    "x86_64": ("target-linux-x64",),
    "aarch64": ("target-linux-sbsa-armv8", "target-linux-tegra-armv8"),
    "AMD64": ("target-windows-x64",),
}
_INSTALL_FOLDERS = {
    "linux": (
        "/opt/nvidia/nsight-systems/*",
        "/opt/nvidia/nsight-systems-cli/*",
        "/opt/nvidia/nsight-compute/*/host",
        "/opt/nvidia/hpc_sdk/Linux_*/*/profilers/Nsight_Systems",
        "/usr/local/cuda*",
    ),
    "darwin": ("/Applications/NVIDIA Nsight Systems*.app/Contents/MacOS",),
    "win32": (r"C:\Program Files\NVIDIA Corporation\Nsight Systems *",),
}
# Nsight Compute's folders are named by its own version, so only these tell nsys's without running it.
_VERSION_IN_PATH = re.compile(r"nsight[- ]systems(?:-cli)?[ \\/](\d{4}\.\d+(?:\.\d+)*)", re.IGNORECASE)
_VERSION_PRINTED = re.compile(r"version (\d{4}\.\d+(?:\.\d+)*)")


_EXPORT_THERE = (
    "on the machine that made the report: nsys export --type sqlite -o trace.sqlite trace.nsys-rep, and give the"
    " .sqlite file"
)
_PRINT_IT = "install Nsight Systems; to capture on another machine, capture --dry-run prints the command"


class MissingError(ToolError):
    """There is no nsys on this machine."""


@dataclass(frozen=True)
class Nsys:
    """One installed nsys; `version` has two to four numbers, as in ``2023.4.4.54``."""

    path: Path
    version: str


def newest_nsys(*, to_capture: bool = False) -> Nsys:
    """Return the nsys to use: the one that `$NSYS_INSIGHT_NSYS` names, else the newest that is installed.

    What to do where there is none depends on whether a report is to be read, or one is to be made.

    Raises:
        MissingError: There is none.
        ToolError: The variable names none.
    """
    tools = installed()
    if not tools:
        raise MissingError(
            "nsys is not installed here: it is neither on the PATH nor in " + ", ".join(_install_folders()),
            f"{_PRINT_IT if to_capture else _EXPORT_THERE}; or set ${NSYS_VARIABLE} to an nsys or its install folder",
        )
    return tools[0]


def installed() -> list[Nsys]:
    """Return every nsys that can be found, the newest first; only that of `$NSYS_INSIGHT_NSYS` if it is set.

    Any nsys reads the reports of those before it, so the newest is the best bet.

    Raises:
        ToolError: `$NSYS_INSIGHT_NSYS` names no nsys.
    """
    chosen = os.environ.get(NSYS_VARIABLE)
    if chosen:
        return [_chosen(expanded(chosen))]
    tools: dict[str, Nsys] = {}
    for path in _candidates():
        real = os.path.realpath(path)
        if real not in tools and (version := _version(path)):
            tools[real] = Nsys(path, version)
    return sorted(tools.values(), key=lambda tool: [int(number) for number in tool.version.split(".")], reverse=True)


def printed_version(path: Path) -> str:
    """Return what ``nsys --version`` prints, or an empty string if it does not run."""
    import subprocess

    try:
        run = subprocess.run(  # noqa: S603 (it is the user's own nsys)
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return run.stdout.decode("utf-8", "replace").strip()


def _chosen(chosen: Path) -> Nsys:
    hint = f"set it to an nsys executable or its install folder, or unset it: unset {NSYS_VARIABLE}"
    if not chosen.exists():
        raise ToolError(f"${NSYS_VARIABLE} is {chosen}, which does not exist", hint)
    path = _executable_in(chosen) if chosen.is_dir() else chosen.absolute()
    if not path:
        raise ToolError(f"${NSYS_VARIABLE} is {chosen}, a folder without an nsys for this machine", hint)
    version = _version(path)
    if not version:
        raise ToolError(f"${NSYS_VARIABLE} is {chosen}, which does not run as an nsys", hint)
    return Nsys(path, version)


def _candidates() -> list[Path]:
    import glob
    import shutil

    on_path = shutil.which("nsys")
    paths = [Path(on_path).absolute()] if on_path else []
    for pattern in _install_folders():
        paths += filter(None, (_executable_in(Path(folder)) for folder in glob.glob(pattern)))  # noqa: PTH207 (absolute)
    return paths


def _executable_in(folder: Path) -> Path | None:
    """Return the nsys of an install folder; bin/nsys is often a script that starts that of the target folder."""
    import platform

    for below in (*_TARGETS.get(platform.machine(), ()), "bin", "."):
        path = folder.absolute() / below / _EXECUTABLE
        if path.is_file() and os.access(path, os.X_OK):
            return path
    return None


def _install_folders() -> tuple[str, ...]:
    return _INSTALL_FOLDERS.get(sys.platform, ())


def _version(path: Path) -> str:
    """Return the version of the nsys at `path`; an empty string if it does not run."""
    if not os.access(path, os.X_OK):
        return ""
    found = _VERSION_IN_PATH.search(os.path.realpath(path)) or _VERSION_PRINTED.search(printed_version(path))
    return found[1] if found else ""
