"""Paths of the package's data files: inside the installed package, or next to it in a checkout."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parent


@cache
def queries_folder() -> Path:
    """Return the folder of packs, model and catalog."""
    packaged = _PACKAGE / "queries"
    return packaged if packaged.is_dir() else _PACKAGE.parent / "queries"


def package_folder() -> Path:
    """Return the folder of the package's Python modules."""
    return _PACKAGE


def read_query(name: str) -> str:
    """Read the SQL of a file in the queries folder, "model/raw", or in the folder of a fact, "facts/steps/totals"."""
    folder = package_folder() if name.startswith("facts/") else queries_folder()
    return (folder / f"{name}.sql").read_text(encoding="utf-8")


@cache
def read_catalog(name: str, folder: str = "catalog") -> dict[str, Any]:
    """Read a catalog, which people edit: a TOML file in a folder of ``queries``."""
    import tomllib

    return tomllib.loads((queries_folder() / folder / f"{name}.toml").read_text(encoding="utf-8"))


def demo_trace() -> Path:
    """Return the path of the sample trace that ``nsys-insight demo`` reads."""
    packaged = _PACKAGE / "demo" / "decode_eager.sqlite"
    return packaged if packaged.is_file() else _PACKAGE.parent / "sample_traces" / "decode_eager.sqlite"


def expand_home(path: str | Path) -> Path:
    """Expand ``~`` in a user's path to the home folder; for an unknown user, ``~`` stays part of the name."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - pathlib raises a RuntimeError for a user without a home


def list_project_folders(start: Path | None = None) -> list[Path]:
    """Return the folders of the project around `start`, the working folder by default, from the inside to the outside.

    The last one is the root of the repository (it has `.git`) or the home folder, the nearer of the two. Outside of
    both, only `start` belongs to the project: a folder above it, such as `/tmp`, may belong to others.
    """
    first = (start or Path.cwd()).resolve()
    home = expand_home("~").resolve()
    folders = [first, *first.parents]
    ends = (number for number, folder in enumerate(folders, 1) if folder == home or (folder / ".git").exists())
    return folders[: next(ends, 1)]


def is_of_another_user(path: Path, file: int | None = None) -> bool:
    """Return whether a file, or the link in its place, belongs to a user other than this one and root.

    `file` is the descriptor of the open file. Without owners of Unix, nothing belongs to another user.
    """
    if sys.platform == "win32":
        return False
    owners = {path.lstat().st_uid, (path.stat() if file is None else os.fstat(file)).st_uid}
    return not owners <= {os.geteuid(), 0}


def user_folder(name: str) -> Path:
    """Return a folder of the user: ``$NSYS_INSIGHT_<NAME>_DIR``, else `name` in the user's configuration."""
    variable = os.environ.get(f"NSYS_INSIGHT_{name.removesuffix('s').upper()}_DIR")
    if variable:
        return expand_home(variable)
    from platformdirs import user_config_path

    return user_config_path("nsys-insight", appauthor=False) / name
