"""Compile the package's C sources with the user's own compiler."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from nsys_insight.errors import ToolError

if TYPE_CHECKING:
    from pathlib import Path

_COMPILERS = ("cc", "gcc", "clang")


def compile_c(source: Path, output: Path, *flags: str, purpose: str, hint: str) -> Path:
    """Compile a source, and return the output.

    Raises:
        ToolError: There is no C compiler, or it failed. The text begins with the purpose, the hint is the caller's.
    """
    compiler = next((path for name in _COMPILERS if (path := shutil.which(name))), None)
    if sys.platform != "linux" or not compiler:
        raise ToolError(f"{purpose} needs Linux and a C compiler, and there is none here", hint)
    command = [compiler, "-O2", *flags, "-o", str(output), str(source), "-ldl"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the user's compiler
    if process.returncode:
        raise ToolError(f"{shlex.join(command)} failed: {process.stderr.strip()[:200]}", hint)
    return output
