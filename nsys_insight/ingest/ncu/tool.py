"""The user's own ncu: find it, print the pages of a report, and explain its failures."""

from __future__ import annotations

import os
from pathlib import Path

from nsys_insight.errors import ToolError, TraceError
from nsys_insight.extras import write_install_command
from nsys_insight.ingest.ncu import report_blocks, report_reader
from nsys_insight.ingest.ncu.pages import Launch, merge_launches, parse
from nsys_insight.paths import expand_home
from nsys_insight.programs import find_in_folder, find_tool, run_visibly

NCU_VARIABLE = "NSYS_INSIGHT_NCU"
_INSTALL_FOLDERS = (
    "/opt/nvidia/nsight-compute/*",
    "/opt/nvidia/hpc_sdk/Linux_*/*/profilers/Nsight_Compute",
    "/usr/local/cuda*/nsight-compute*",
    "/usr/local/cuda*/bin",
    r"C:\Program Files\NVIDIA Corporation\Nsight Compute *",
    "/Applications/NVIDIA Nsight Compute*.app/Contents/MacOS",
)
_PERMISSION = "ERR_NVGPUCTRPERM"


def find_newest_ncu() -> Path:
    """Return the ncu to use: that of `$NSYS_INSIGHT_NCU`, else that on the PATH, else the newest in the usual folders.

    Raises:
        ToolError: ncu is not installed, or the variable does not name an ncu.
    """
    configured_path = os.environ.get(NCU_VARIABLE)
    if configured_path:
        path = expand_home(configured_path)
        tool = find_in_folder("ncu", path) if path.is_dir() else path
        if tool and os.access(tool, os.X_OK):
            return tool
        raise ToolError(
            f"${NCU_VARIABLE} is {configured_path}, which is not an ncu", "set it to the ncu executable or its folder"
        )
    if not (newest_tool := find_tool("ncu", _INSTALL_FOLDERS)):
        raise ToolError(
            "ncu not found on the PATH or in the usual install folders",
            f"a .ncu-rep is read without it after: {write_install_command('ncu')}; or where ncu is: ncu --import "
            f"FILE.ncu-rep --csv --page raw > FILE.raw.csv (and --page details); or set ${NCU_VARIABLE}",
        )
    return newest_tool


def read_pages(report: Path) -> list[Launch]:
    """Read both pages of a report. Where ncu is missing, read the report with NVIDIA's package, if that is installed.

    Raises:
        ToolError: Both are missing, or one cannot read the report.
        TraceError: The file was cut, or is otherwise damaged.
    """
    if report_blocks.is_cut(report):
        raise TraceError(
            f"{report} is cut or damaged: it ends within a block, so launches or metrics are missing",
            "copy it again, or profile again with ncu",
        )
    launches: dict[tuple[object, ...], Launch] = {}
    try:
        ncu = find_newest_ncu()
    except ToolError:
        if not report_reader.is_installed():
            raise
        return report_reader.read_report(report)
    for page in ("raw", "details"):
        merge_launches(launches, parse(print_page(ncu, report, page), report.name))
    return list(launches.values())


def run(command: list[str]) -> None:
    """Run an ncu command, and pass its output on to stderr.

    Raises:
        ToolError: It failed. If a permission is missing, the hint says how to get it.
    """
    try:
        code, output = run_visibly(command)
    except OSError as error:
        raise ToolError(f"{command[0]} does not run: {error.strerror}", f"set ${NCU_VARIABLE} to an ncu") from None
    if _PERMISSION in output:
        raise permission_error()
    if code:
        raise ToolError(f"ncu failed with exit code {code}", _find_last_error(output))
    if "No kernels were profiled" in output:
        raise ToolError(
            "ncu profiled no kernel: none of the launches matched",
            "the program may not run the same kernels as in the trace: list them with --set basic and no filter",
        )


def permission_error() -> ToolError:
    """Return the error of a user who may not read the GPU's counters, with the two known remedies."""
    return ToolError(
        f"this user may not read the GPU's performance counters ({_PERMISSION})",
        "run the command as root (sudo, or docker run --cap-add=SYS_ADMIN); or have an administrator allow "
        "all users: write 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' "
        "to a file in /etc/modprobe.d, and reboot",
    )


def print_page(ncu: Path, report: Path, page: str, *options: str) -> str:
    """Return a page of a report as CSV, as ncu prints it.

    Raises:
        ToolError: ncu cannot read the report.
    """
    import subprocess

    command = [str(ncu), "--import", str(report), "--csv", "--page", page, "--print-units", "base", *options]
    try:
        process = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)  # noqa: S603 - the user's own ncu
    except OSError as error:
        raise ToolError(f"{ncu} does not run: {error.strerror}", f"set ${NCU_VARIABLE} to an ncu") from None
    output = process.stdout.decode("utf-8", "backslashreplace")
    if process.returncode or not any(word in output for word in ('"Kernel Name"', '"Function Name"')):
        output_and_errors = output + process.stderr.decode("utf-8", "replace")
        raise ToolError(
            f"ncu cannot read {report}: {_find_last_error(output_and_errors) or 'it printed nothing'}",
            "use the ncu that wrote it, or a newer one",
        )
    return output


def _find_last_error(output: str) -> str:
    errors = [line for line in output.splitlines() if line.startswith("==ERROR==") or "rror" in line]
    return errors[-1].removeprefix("==ERROR==").strip() if errors else ""
