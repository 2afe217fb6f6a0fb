"""Where the package's own data files are: inside the installed package, or beside it in a checkout."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parent


@cache
def queries_folder() -> Path:
    """The folder of packs, model and catalogue."""
    packaged = _PACKAGE / "queries"
    return packaged if packaged.is_dir() else _PACKAGE.parent / "queries"


def package_folder() -> Path:
    """The folder of the package's Python modules."""
    return _PACKAGE


def query(name: str) -> str:
    """The SQL of a file below it: ``query("facts/steps/totals")``."""
    return (queries_folder() / f"{name}.sql").read_text(encoding="utf-8")


@cache
def catalog(name: str) -> dict[str, Any]:
    """A table that people edit, ``queries/catalog/NAME.toml``."""
    import tomllib

    return tomllib.loads((queries_folder() / "catalog" / f"{name}.toml").read_text(encoding="utf-8"))


def demo_trace() -> Path:
    """The sample trace that ``nsys-insight demo`` reads."""
    packaged = _PACKAGE / "demo" / "decode_eager.sqlite"
    return packaged if packaged.is_file() else _PACKAGE.parent / "sample_traces" / "decode_eager.sqlite"


def expanded(path: str | Path) -> Path:
    """A path as the user gave it, with ``~`` for the home folder; where there is no such user, ``~`` is a name."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - pathlib raises a RuntimeError for a user without a home


def user_folder(name: str) -> Path:
    """A folder of the user's own: ``$NSYS_INSIGHT_<NAME>_DIR``, else `name` in the user's configuration."""
    chosen = os.environ.get(f"NSYS_INSIGHT_{name.removesuffix('s').upper()}_DIR")
    if chosen:
        return expanded(chosen)
    from platformdirs import user_config_path

    return user_config_path("nsys-insight", appauthor=False) / name
