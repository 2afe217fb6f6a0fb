"""DuckDB's extension that reads SQLite files: find it, verify its signature, and load it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight import cache_folder
from nsys_insight.errors import ToolError
from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    import duckdb

_PACKAGE = "duckdb-extension-sqlite-scanner"
# The extension files whose signature this process has checked.
_checked: set[Path] = set()


def find_scanner() -> Path | None:
    """Return DuckDB's SQLite extension from PyPI; None if there is no build for this DuckDB and platform."""
    from importlib.util import find_spec

    import duckdb

    spec = find_spec(_PACKAGE.replace("-", "_"))
    if not spec or not spec.origin:
        return None
    path = Path(spec.origin).parent / "extensions" / f"v{duckdb.__version__}" / "sqlite_scanner.duckdb_extension"
    return path if path.is_file() else None


def load(connection: duckdb.DuckDBPyConnection, extension: Path, *, use_cache: bool = True) -> None:
    """Load the extension, and check its signature the first time.

    DuckDB hashes 35 MB for that, which takes as long as a small report. So the check runs once, and again when the file
    changes. The cache folder remembers it. Without `use_cache`, or without a cache folder, it runs every time.

    Raises:
        ToolError: It has no signature of DuckDB's.
        duckdb.Error: It was built for another DuckDB or platform.
    """
    import duckdb

    marker = None
    if use_cache:
        with suppress(OSError):
            marker = _marker_file(extension)
    is_checked = extension in _checked or (marker is not None and marker.is_file())
    if not is_checked:
        connection.execute("SET allow_unsigned_extensions = false")
    try:
        connection.execute(f"LOAD {literal(str(extension))}")
    except duckdb.IOException as error:
        if "signature" not in str(error):
            raise
        raise ToolError(
            f"{extension} is not DuckDB's own: its signature is missing or invalid",
            f"install it again: python3 -m pip install --force-reinstall --no-deps {_PACKAGE}=={duckdb.__version__}",
        ) from None
    _checked.add(extension)
    if marker:
        with suppress(OSError):
            cache_folder.claim(marker.name).touch(mode=0o600)


def _marker_file(extension: Path) -> Path:
    """Return a file of the cache folder that identifies the extension file; it exists if the signature was checked."""
    status = extension.stat()
    identity = f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
    return cache_folder.folder() / f"{cache_folder.digest('extension', str(extension), identity)}.last"
