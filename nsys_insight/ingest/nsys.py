"""The user's own nsys: find it, and read its version."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from nsys_insight.errors import ToolError
from nsys_insight.paths import expand_home
from nsys_insight.programs import find_in_folder

NSYS_VARIABLE = "NSYS_INSIGHT_NSYS"

# An install has an nsys for every target platform. These are the folders of those that run on this machine.
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
# Nsight Compute's folders carry its own version. Only these folders show nsys's version without running it.
_VERSION_IN_PATH = re.compile(r"nsight[- ]systems(?:-cli)?[ \\/](\d{4}\.\d+(?:\.\d+)*)", re.IGNORECASE)
_VERSION_PRINTED = re.compile(r"version (\d{4}\.\d+(?:\.\d+)*)")


_EXPORT_ELSEWHERE_HINT = (
    "on the machine that made the report: nsys export --type sqlite -o trace.sqlite trace.nsys-rep, and give the"
    " .sqlite file"
)
_DRY_RUN_HINT = "install Nsight Systems; to capture on another machine, capture --dry-run prints the command"


class MissingError(ToolError):
    """nsys is not installed on this machine."""


@dataclass(frozen=True)
class Nsys:
    """An installed nsys; `version` has two to four numbers, as in ``2023.4.4.54``."""

    path: Path
    version: str


def find_newest_nsys(*, to_capture: bool = False) -> Nsys:
    """Return the nsys that `$NSYS_INSIGHT_NSYS` names, else the newest installed one.

    `to_capture` selects the hint of the error: how to write a report without nsys, or how to read one.

    Raises:
        MissingError: nsys is not installed.
        ToolError: The variable does not name an nsys.
    """
    tools = find_installed()
    if not tools:
        hint = _DRY_RUN_HINT if to_capture else _EXPORT_ELSEWHERE_HINT
        raise MissingError(
            "nsys not found on the PATH or in " + ", ".join(_install_folders()),
            f"{hint}; or set ${NSYS_VARIABLE} to an nsys or its install folder",
        )
    return tools[0]


def find_installed() -> list[Nsys]:
    """Return every installed nsys, the newest first; only that of `$NSYS_INSIGHT_NSYS` if it is set.

    Every nsys reads the reports of earlier versions, so the newest one is tried first.

    Raises:
        ToolError: `$NSYS_INSIGHT_NSYS` does not name an nsys.
    """
    configured_path = os.environ.get(NSYS_VARIABLE)
    if configured_path:
        return [_check_configured(expand_home(configured_path))]
    tools: dict[str, Nsys] = {}
    for path in _list_candidates():
        real = os.path.realpath(path)
        if real not in tools and (version := _read_version(path)):
            tools[real] = Nsys(path, version)
    return sorted(tools.values(), key=lambda tool: [int(number) for number in tool.version.split(".")], reverse=True)


def read_version_output(path: Path) -> str:
    """Return the output of ``nsys --version``; an empty string if it does not run."""
    import subprocess

    try:
        run = subprocess.run(  # noqa: S603 (it is the user's own nsys)
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return run.stdout.decode("utf-8", "replace").strip()


def _check_configured(configured_path: Path) -> Nsys:
    hint = f"set it to an nsys executable or its install folder, or unset it: unset {NSYS_VARIABLE}"
    if not configured_path.exists():
        raise ToolError(f"${NSYS_VARIABLE} is {configured_path}, which does not exist", hint)
    path = _find_executable(configured_path) if configured_path.is_dir() else configured_path.absolute()
    if not path:
        raise ToolError(f"${NSYS_VARIABLE} is {configured_path}, a folder without an nsys for this machine", hint)
    version = _read_version(path)
    if not version:
        raise ToolError(f"${NSYS_VARIABLE} is {configured_path}, which does not run as an nsys", hint)
    return Nsys(path, version)


def _list_candidates() -> list[Path]:
    import glob
    import shutil

    on_path = shutil.which("nsys")
    paths = [Path(on_path).absolute()] if on_path else []
    for pattern in _install_folders():
        paths += filter(None, (_find_executable(Path(folder)) for folder in glob.glob(pattern)))  # noqa: PTH207 (absolute)
    return paths


def _find_executable(folder: Path) -> Path | None:
    """Return the nsys of an install folder. bin/nsys is often a script that starts the one in the target folder."""
    import platform

    subfolders = (*_TARGETS.get(platform.machine(), ()), "bin", ".")
    return find_in_folder("nsys", *(folder.absolute() / subfolder for subfolder in subfolders))


def _install_folders() -> tuple[str, ...]:
    return _INSTALL_FOLDERS.get(sys.platform, ())


def _read_version(path: Path) -> str:
    """Return the version of the nsys at `path`; an empty string if it does not run."""
    if not os.access(path, os.X_OK):
        return ""
    match = _VERSION_IN_PATH.search(os.path.realpath(path)) or _VERSION_PRINTED.search(read_version_output(path))
    return match[1] if match else ""
