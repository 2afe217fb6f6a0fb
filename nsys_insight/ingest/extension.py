"""DuckDB's extension that reads SQLite files: where it is, and that it is DuckDB's own."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from nsys_insight.errors import ToolError
from nsys_insight.ingest import cache_folder
from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

_PACKAGE = "duckdb-extension-sqlite-scanner"
# Those whose signature was checked by this process.
_checked: set[Path] = set()


def scanner() -> Path | None:
    """DuckDB's SQLite extension as installed from PyPI, or None where there is none for this DuckDB and platform."""
    from importlib.util import find_spec
    from pathlib import Path

    import duckdb

    spec = find_spec(_PACKAGE.replace("-", "_"))
    if not spec or not spec.origin:
        return None
    path = Path(spec.origin).parent / "extensions" / f"v{duckdb.__version__}" / "sqlite_scanner.duckdb_extension"
    return path if path.is_file() else None


def load(connection: duckdb.DuckDBPyConnection, extension: Path, *, lasting: bool = True) -> None:
    """Load it, the first time by its signature.

    DuckDB hashes 35 MB to check that, which takes as long as a small question. So it is done once, and again when the
    file is another, which the cache folder remembers; each time without `lasting`, or where there is no such folder.

    Raises:
        ToolError: It has no signature of DuckDB's.
        duckdb.Error: It is of another DuckDB or platform.
    """
    import duckdb

    memory = None
    if lasting:
        with suppress(OSError):
            memory = _memory(extension)
    known = extension in _checked or (memory is not None and memory.is_file())
    if not known:
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
    if memory:
        with suppress(OSError):
            memory.touch(mode=0o600)


def _memory(extension: Path) -> Path:
    """A file of the cache folder that stands for the extension as it is: there, if its signature was checked."""
    status = extension.stat()
    which = f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
    return cache_folder.folder() / f"{cache_folder.digest('extension', str(extension), which)}.last"
