"""Packages that only some commands need: the command that installs them into the current environment."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from shlex import quote


def write_install_command(extra: str) -> str:
    """Write the command that installs an extra into this environment, with its pip, or with uv if it has no pip.

    `uv tool` and `pipx` create a separate environment, which the pip on the PATH does not use.
    """
    package = f"'nsys-insight[{extra}]'"
    if find_spec("pip") is None:
        return f"uv pip install --python {quote(sys.prefix)} {package}"
    return f"{_python_command()} -m pip install {package}"


def _python_command() -> str:
    """Return the command of this Python as a user would type it."""
    from shutil import which

    path = which("python3")
    return "python3" if path and Path(path).parent == Path(sys.executable).parent else quote(sys.executable)
