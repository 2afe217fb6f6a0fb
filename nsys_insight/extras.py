"""Packages that only some commands need: how they are added to the environment in which this one runs."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from shlex import quote


def install(extra: str) -> str:
    """Return the command that adds an extra here: with this environment's pip, or uv's where it has none.

    `uv tool` and `pipx` make an environment of its own, of which the pip on the PATH knows nothing.
    """
    wanted = f"'nsys-insight[{extra}]'"
    if find_spec("pip") is None:
        return f"uv pip install --python {quote(sys.prefix)} {wanted}"
    return f"{_python()} -m pip install {wanted}"


def _python() -> str:
    """Name this Python as one would type it."""
    from shutil import which

    found = which("python3")
    return "python3" if found and Path(found).parent == Path(sys.executable).parent else quote(sys.executable)
