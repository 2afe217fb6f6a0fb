"""Open files with machine code: binaries (through cuobjdump or nvdisasm), disassemblies, and ncu's source pages."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from contextlib import closing, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight.errors import ToolError, TraceError
from nsys_insight.kernel_code import disassembly, source_page
from nsys_insight.paths import expand_home
from nsys_insight.programs import CUDA_FOLDERS, find_in_folder, find_tool

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from nsys_insight.kernel_code.instructions import Kernel

_INPUTS = (
    "give a cubin, an executable or a library; what cuobjdump -sass or nvdisasm printed; or ncu's source page: "
    "ncu --import FILE.ncu-rep --csv --page source > FILE.source.csv"
)
# Lines that are searched for the header of a source page: the program's own output may come first.
_HEADER_LINES = 200
CUDA_VARIABLE = "NSYS_INSIGHT_CUDA"
# Wheels with disassemblers: NVIDIA's own, and Triton's.
_WHEELS = ("nvidia/cu*/bin", "nvidia/cuda_cuobjdump/bin", "nvidia/cuda_nvdisasm/bin", "triton/backends/nvidia/bin")
_CUBIN_MACHINE = 190  # EM_CUDA
_INSTALL = "python3 -m pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm"


@contextmanager
def open_kernels(
    file: Path, architecture: str | None = None, left_out: list[str] | None = None
) -> Iterator[Iterator[Kernel]]:
    """Open a file and yield an iterator over its functions; `-` is a text on stdin.

    Of a binary with code for several architectures, only that for `architecture` is disassembled. A sentence about code
    that the disassembler does not know is appended to `left_out`, if there is other code.

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
        with _run_disassembler(file, first_bytes, architecture, [] if left_out is None else left_out) as lines:
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
def _run_disassembler(
    file: Path, first_bytes: bytes, architecture: str | None, left_out: list[str]
) -> Iterator[Iterator[str]]:
    """Run a disassembler on a binary file, and yield the lines that it prints.

    nvdisasm reads cubins, because it prints source lines. cuobjdump reads all other files, one architecture at a time:
    it stops at the first one that it does not know.
    """
    is_cubin = first_bytes.startswith(b"\x7fELF") and int.from_bytes(first_bytes[18:20], "little") == _CUBIN_MACHINE
    nvdisasm, cuobjdump = _find_disassembler("nvdisasm"), _find_disassembler("cuobjdump")
    # cuobjdump starts the first nvdisasm on the PATH.
    folders = [str(tool.parent) for tool in (nvdisasm, cuobjdump) if tool]
    environment = {**os.environ, "PATH": os.pathsep.join([*folders, os.environ.get("PATH", "")])}
    if is_cubin and nvdisasm:
        commands = {"": [str(nvdisasm), "-g", "-c", "-hex", str(file)]}
    elif cuobjdump:
        names = _list_architectures(cuobjdump, file, environment)
        commands = {name: [str(cuobjdump), "-sass", "-arch", name, str(file)] for name in names}
        if len(names) < 2 or architecture in names:
            commands = {"": commands.get(architecture or "", [str(cuobjdump), "-sass", str(file)])}
    else:
        raise ToolError(
            f"{file} is machine code, but neither cuobjdump nor nvdisasm is installed here",
            f"{_INSTALL}; or run cuobjdump -sass {file.name} > sass.txt where they are, and give sass.txt",
        )
    lines = _read_all(commands, file, environment, left_out)
    with closing(lines):
        yield lines


def _list_architectures(cuobjdump: Path, file: Path, environment: Mapping[str, str]) -> list[str]:
    """Return the architectures that a binary has code for, in the order of the file; nothing if cuobjdump fails."""
    import subprocess

    command = [str(cuobjdump), "-lelf", str(file)]
    try:
        result = subprocess.run(  # noqa: S603 - the user's own disassembler
            command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, check=False,
            encoding="utf-8", errors="backslashreplace",
        )  # fmt: skip
    except OSError:
        return []
    return list(dict.fromkeys(re.findall(r"\.(sm_\w+)\.cubin$", result.stdout, re.MULTILINE)))


def _read_all(
    commands: Mapping[str, list[str]], file: Path, environment: Mapping[str, str], left_out: list[str]
) -> Generator[str]:
    """Yield the lines that disassemblers print. Each but one of them may fail, which `left_out` then tells."""
    errors = {}
    for architecture, command in commands.items():
        try:
            yield from _read_lines(command, file, environment)
        except ToolError as error:
            if len(commands) == 1:
                raise
            errors[architecture] = error
    if errors.keys() == commands.keys():
        raise next(iter(errors.values()))
    if errors:
        names = ", ".join(errors)
        left_out.append(f"left out: code for {names}, which this cuobjdump does not know; that of an older toolkit may")


def _read_lines(command: list[str], file: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Run a disassembler and yield the lines that it prints."""
    import subprocess

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
                yield from process.stdout
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            errors.seek(0)
            error_lines = errors.read().decode("utf-8", "replace").strip().splitlines()
            reason = error_lines[-1] if error_lines else f"exit {process.returncode}"
            # A toolkit knows the architectures of its time: not later ones, and not all earlier ones.
            hint = f"a newer one may know it: {_INSTALL}"
            if "deprecated" in reason or "gpu-architecture" in reason:
                hint = "a CUDA toolkit of that GPU's time reads it"
            raise ToolError(f"{Path(command[0]).name} cannot read {file}: {reason}", hint)


def _find_disassembler(name: str) -> Path | None:
    """Find a disassembler: in `$NSYS_INSIGHT_CUDA`, on the PATH, in CUDA's usual folders, in wheels."""
    import glob

    for variable in (CUDA_VARIABLE, "CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            folder = expand_home(os.environ[variable])
            tool = find_in_folder(name, folder, folder / "bin")
            if tool or variable == CUDA_VARIABLE:  # the user named a folder: look nowhere else
                return tool
    wheels = (f"{glob.escape(folder)}/{wheel}" for folder in sys.path if folder for wheel in _WHEELS)
    return find_tool(name, (*CUDA_FOLDERS, *wheels))
