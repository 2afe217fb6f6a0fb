"""Open files with machine code: binaries (through cuobjdump or nvdisasm), disassemblies, and ncu's source pages."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight.errors import ToolError, TraceError
from nsys_insight.kernel_code import disassembly, source_page
from nsys_insight.paths import expand_home

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsys_insight.kernel_code.instructions import Kernel

_INPUTS = (
    "give a cubin, an executable or a library; what cuobjdump -sass or nvdisasm printed; or ncu's source page: "
    "ncu --import FILE.ncu-rep --csv --page source > FILE.source.csv"
)
# Lines that are searched for the header of a source page: the program's own output may come first.
_HEADER_LINES = 200
CUDA_VARIABLE = "NSYS_INSIGHT_CUDA"
_SUFFIX = ".exe" if sys.platform == "win32" else ""
_FOLDERS = ("/usr/local/cuda*/bin", "/opt/cuda/bin", "/opt/nvidia/hpc_sdk/Linux_*/*/cuda/*/bin")
# Wheels with disassemblers: NVIDIA's own, and Triton's.
_WHEELS = ("nvidia/cu*/bin", "nvidia/cuda_cuobjdump/bin", "nvidia/cuda_nvdisasm/bin", "triton/backends/nvidia/bin")
_CUBIN_MACHINE = 190  # EM_CUDA
_INSTALL = "python3 -m pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm"


@contextmanager
def open_kernels(file: Path) -> Iterator[Iterator[Kernel]]:
    """Open a file and yield an iterator over its functions; `-` is a text on stdin.

    Raises:
        TraceError: The file cannot be read, or is an ncu report, or PTX.
        ToolError: The file is binary, and no disassembler is installed, or it failed.
    """
    if str(file) == "-":
        yield _read_text(sys.stdin)
        return
    try:
        with file.open("rb") as stream:
            first_bytes = stream.read(64)
    except OSError as error:
        raise TraceError(f"{file} cannot be read: {error.strerror}", _INPUTS) from None
    if first_bytes.startswith(b"NVR\0") or file.suffix == ".ncu-rep":
        raise TraceError(
            f"{file} is a report of ncu, whose source page is read as CSV",
            f"ncu --import {file.name} --csv --page source > {file.stem}.source.csv",
        )
    if _is_binary(first_bytes):
        with _run_disassembler(file, first_bytes) as lines:
            yield disassembly.read_kernels(lines)
        return
    with file.open(encoding="utf-8-sig", errors="backslashreplace", newline=None) as text:
        yield _read_text(text)


def _read_text(lines: Iterator[str]) -> Iterator[Kernel]:
    """Read a source page or a disassembly. The first lines show which of the two it is."""
    first_lines = list(islice(lines, _HEADER_LINES))
    header_index = next((number for number, line in enumerate(first_lines) if source_page.is_header(line)), None)
    if header_index is not None:
        return source_page.read_kernels(chain(first_lines[header_index:], lines))
    if any(line.lstrip().startswith((".version", ".address_size")) for line in first_lines):
        raise TraceError("the text is PTX, not machine code; ptxas compiles it", "nvcc -cubin -lineinfo FILE.cu")
    return disassembly.read_kernels(chain(first_lines, lines))


def build_no_code_error(file: Path) -> TraceError:
    """Build the error for a file without machine code."""
    return TraceError(f"there is no machine code for sm_70 or newer in {file}", _INPUTS)


def _is_binary(first_bytes: bytes) -> bool:
    """Return whether cuobjdump can read a file with these first bytes: ELF, Windows program, archive or fatbin."""
    return first_bytes.startswith((b"\x7fELF", b"MZ", b"!<arch>\n", b"\x50\xed\x55\xba"))


@contextmanager
def _run_disassembler(file: Path, first_bytes: bytes) -> Iterator[Iterator[str]]:
    """Run a disassembler on a binary file, and yield the lines that it prints.

    nvdisasm reads cubins, because it prints source lines. cuobjdump reads all other files.

    Raises:
        ToolError: No disassembler is installed, or it failed.
    """
    import subprocess

    is_cubin = first_bytes.startswith(b"\x7fELF") and int.from_bytes(first_bytes[18:20], "little") == _CUBIN_MACHINE
    nvdisasm, cuobjdump = _find_tool("nvdisasm"), _find_tool("cuobjdump")
    if is_cubin and nvdisasm:
        command = [str(nvdisasm), "-g", "-c", "-hex", str(file)]
    elif cuobjdump:
        command = [str(cuobjdump), "-sass", str(file)]
    else:
        raise ToolError(
            f"{file} is machine code, but neither cuobjdump nor nvdisasm is installed here",
            f"{_INSTALL}; or run cuobjdump -sass {file.name} > sass.txt where they are, and give sass.txt",
        )
    # cuobjdump starts the first nvdisasm on the PATH.
    folders = [str(tool.parent) for tool in (nvdisasm, cuobjdump) if tool]
    environment = {**os.environ, "PATH": os.pathsep.join([*folders, os.environ.get("PATH", "")])}
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(  # noqa: S603 - the user's own disassembler
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=environment,
                encoding="utf-8", errors="backslashreplace",
            )  # fmt: skip
        except OSError as error:
            raise ToolError(f"{command[0]} does not run: {error.strerror}", _INSTALL) from None
        with process:
            try:
                assert process.stdout  # noqa: S101 - stdout is a pipe
                yield process.stdout
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            errors.seek(0)
            error_lines = errors.read().decode("utf-8", "replace").strip().splitlines()
            reason = error_lines[-1] if error_lines else f"exit {process.returncode}"
            raise ToolError(
                f"{Path(command[0]).name} cannot read {file}: {reason}", f"a newer one may know it: {_INSTALL}"
            )


def _find_tool(name: str) -> Path | None:
    """Find a disassembler: in `$NSYS_INSIGHT_CUDA`, on the PATH, in CUDA's usual folders, in wheels."""
    import glob
    import shutil

    for variable in (CUDA_VARIABLE, "CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            folder = expand_home(os.environ[variable])
            for path in (folder / f"{name}{_SUFFIX}", folder / "bin" / f"{name}{_SUFFIX}"):
                if _is_executable(path):
                    return path
            if variable == CUDA_VARIABLE:
                return None  # the user named a folder: look nowhere else
    on_path = shutil.which(name)
    if on_path:
        return Path(on_path)
    patterns = [*_FOLDERS, *(f"{glob.escape(folder)}/{wheel}" for folder in sys.path if folder for wheel in _WHEELS)]
    paths = (Path(folder) / f"{name}{_SUFFIX}" for pattern in patterns for folder in sorted(glob.glob(pattern))[::-1])  # noqa: PTH207 (absolute)
    return next(filter(_is_executable, paths), None)


def _is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
