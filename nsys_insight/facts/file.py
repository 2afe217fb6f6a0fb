"""What stands for the definitions of facts: facts that were found with others are not to be used."""

from __future__ import annotations

from functools import cache

from nsys_insight.ingest import cache_folder
from nsys_insight.model.views import macro_statements
from nsys_insight.paths import package_folder, queries_folder


@cache
def definitions() -> str:
    """Stand for all that says what facts are: facts that were found otherwise are not to be used."""
    folders = [queries_folder() / name for name in ("catalog", "facts", "model")]
    files = [file for folder in folders for file in folder.rglob("*.*")]
    files += (package_folder() / "facts").rglob("*.py")
    return cache_folder.digest(*(path.read_bytes() for path in sorted(files)), *macro_statements())
