"""Where the package's own data files are: inside the installed package, or beside it in a checkout."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


@cache
def queries_folder() -> Path:
    """The folder of packs, model and catalogue."""
    packaged = _PACKAGE / "queries"
    return packaged if packaged.is_dir() else _PACKAGE.parent / "queries"


def demo_trace() -> Path:
    """The sample trace that ``nsys-insight demo`` reads."""
    packaged = _PACKAGE / "demo" / "decode_eager.sqlite"
    return packaged if packaged.is_file() else _PACKAGE.parent / "sample_traces" / "decode_eager.sqlite"
