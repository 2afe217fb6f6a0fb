"""The user's own disassemblers, cuobjdump and nvdisasm: where they are, and what they print."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight.errors import ToolError
from nsys_insight.paths import expanded

if TYPE_CHECKING:
    from collections.abc import Iterator

CUDA_VARIABLE = "NSYS_INSIGHT_CUDA"

_SUFFIX = ".exe" if sys.platform == "win32" else ""
_FOLDERS = ("/usr/local/cuda*/bin", "/opt/cuda/bin", "/opt/nvidia/hpc_sdk/Linux_*/*/cuda/*/bin")
# Wheels that bring them: NVIDIA's own, and Triton's.
_WHEELS = ("nvidia/cu*/bin", "nvidia/cuda_cuobjdump/bin", "nvidia/cuda_nvdisasm/bin", "triton/backends/nvidia/bin")
_CUBIN_MACHINE = 190  # EM_CUDA
_INSTALL = "python3 -m pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm"


def is_binary(head: bytes) -> bool:
    """Tell by its first bytes whether cuobjdump reads a file: ELF, a Windows program, an archive, a fatbin."""
    return head.startswith((b"\x7fELF", b"MZ", b"!<arch>\n", b"\x50\xed\x55\xba"))


@contextmanager
def disassembled(file: Path, head: bytes) -> Iterator[Iterator[str]]:
    """Give the lines that a disassembler prints of a binary file.

    A cubin is read by nvdisasm, which knows the lines of the source; everything else by cuobjdump.

    Raises:
        ToolError: Neither is installed, or it failed.
    """
    import subprocess

    is_cubin = head.startswith(b"\x7fELF") and int.from_bytes(head[18:20], "little") == _CUBIN_MACHINE
    nvdisasm, cuobjdump = find("nvdisasm"), find("cuobjdump")
    if is_cubin and nvdisasm:
        command = [str(nvdisasm), "-g", "-c", "-hex", str(file)]
    elif cuobjdump:
        command = [str(cuobjdump), "-sass", str(file)]
    else:
        raise ToolError(
            f"{file} is machine code, but neither cuobjdump nor nvdisasm is installed here",
            f"{_INSTALL}; or run cuobjdump -sass {file.name} > sass.txt where they are, and give sass.txt",
        )
    # cuobjdump starts the nvdisasm that it finds.
    folders = [str(tool.parent) for tool in (nvdisasm, cuobjdump) if tool]
    environment = {**os.environ, "PATH": os.pathsep.join([*folders, os.environ.get("PATH", "")])}
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(  # noqa: S603 - the user's own disassembler
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, env=environment,
                encoding="utf-8", errors="backslashreplace",
            )  # fmt: skip
        except OSError as error:
            raise ToolError(f"{command[0]} does not run: {error.strerror}", _INSTALL) from None
        with process:
            try:
                assert process.stdout  # noqa: S101 - a pipe was asked for
                yield process.stdout
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            said.seek(0)
            words = said.read().decode("utf-8", "replace").strip().splitlines()
            raise ToolError(
                f"{Path(command[0]).name} cannot read {file}: {words[-1] if words else f'exit {process.returncode}'}",
                f"a newer one may know it: {_INSTALL}",
            )


def find(name: str) -> Path | None:
    """Find a disassembler: in the folder of `$NSYS_INSIGHT_CUDA`, on the PATH, in CUDA's usual folders, in wheels."""
    import glob
    import shutil

    for variable in (CUDA_VARIABLE, "CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            folder = expanded(os.environ[variable])
            for path in (folder / f"{name}{_SUFFIX}", folder / "bin" / f"{name}{_SUFFIX}"):
                if _runs(path):
                    return path
            if variable == CUDA_VARIABLE:
                return None  # what was named is meant, and nothing else
    on_path = shutil.which(name)
    if on_path:
        return Path(on_path)
    patterns = [*_FOLDERS, *(f"{glob.escape(folder)}/{wheel}" for folder in sys.path if folder for wheel in _WHEELS)]
    found = (Path(folder) / f"{name}{_SUFFIX}" for pattern in patterns for folder in sorted(glob.glob(pattern))[::-1])  # noqa: PTH207 (absolute)
    return next(filter(_runs, found), None)


def _runs(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
