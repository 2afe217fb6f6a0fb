"""A digest of everything that defines the facts. Stored facts with another digest are out of date."""

from __future__ import annotations

from functools import cache

from nsys_insight import cache_folder
from nsys_insight.paths import package_folder, queries_folder, user_folder


@cache
def digest_definitions() -> str:
    """Return the digest of all queries, catalogs and modules that define the facts.

    The files count, not the macros that are written from them: parsing the catalogs takes longer than hashing them.
    """
    folders = [queries_folder() / "catalog", queries_folder() / "model", package_folder() / "facts"]
    folders += [package_folder() / "model", user_folder("catalog")]
    files = [file for folder in folders for suffix in ("sql", "toml", "py") for file in folder.rglob(f"*.{suffix}")]
    return cache_folder.digest(*(path.read_bytes() for path in sorted(files)))
