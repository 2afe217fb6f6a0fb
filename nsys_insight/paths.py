"""Find the files that ship with the package."""

from __future__ import annotations

from pathlib import Path


def queries_folder() -> Path:
    """Return the folder of the SQL files and the catalog: inside the package in a wheel, beside it in a checkout."""
    package = Path(__file__).resolve().parent
    packaged = package / "queries"
    return packaged if packaged.is_dir() else package.parent / "queries"
