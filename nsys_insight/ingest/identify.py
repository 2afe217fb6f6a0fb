"""Identify a file by its content first and its suffix second, without changing it or writing next to it."""

from __future__ import annotations

import os
import struct
from contextlib import closing, suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from nsys_insight import cache_folder
from nsys_insight.errors import TraceError
from nsys_insight.ingest import cache_entries, facts_folder, private, tables_only
from nsys_insight.ingest.files import Kind
from nsys_insight.ingest.sqlite_file import EXPORT_HINT, explain_damage, open_read_only
from nsys_insight.ingest.waiting import copy_file
from nsys_insight.text.suggestions import find_nearest, format_suggestion

if TYPE_CHECKING:
    from collections.abc import Callable


REPORT_SUFFIXES = (".nsys-rep", ".qdrep")

_HEAD_BYTES = 1 << 16
_REPORT_MAGIC = b"NVIDIA Tegra Profiler Report"
_SQLITE_MAGIC = b"SQLite format 3\0"
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_DUCKDB_MAGIC = b"DUCK"  # at the ninth byte
_EXPORT_PREFIXES = ("CUPTI_ACTIVITY_KIND_", "TARGET_INFO_")
_EXPORT_TABLES = {"StringIds", "NVTX_EVENTS", "OSRT_API", "GPU_METRICS", "META_DATA_EXPORT", "EXPORT_META_DATA"}
_FIRST_TABLES = {"StringIds", "ProcessStreams"}

_PROFILE_HINT = "profile with nsys: nsys profile -o trace COMMAND, then give the trace.nsys-rep that it writes"
_COPY_HINT = "compare its size with the original's and copy it again"

# Other files that users give instead of a trace: how they begin, what they are, what to type next.
_FOREIGN_FORMATS = (
    (b"version https://git-lfs.github.com/", "is a Git LFS pointer, not the trace itself", "fetch it: git lfs pull"),
    (b"NVR\0", "is a report of Nsight Compute (ncu), which holds single kernels and no timeline", _PROFILE_HINT),
    (b"\x1f\x8b", "is compressed with gzip", "decompress it first: gunzip --keep FILE"),
    (b"PK\x03\x04", "is a zip archive", "unpack it first: unzip FILE"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd", "decompress it first: zstd -d FILE"),
    (b"\xfd7zXZ\0", "is compressed with xz", "decompress it first: xz --decompress --keep FILE"),
    (b"\x89HDF\r\n", "is an HDF5 file, which is not read", EXPORT_HINT),
    (b"\xff\xff\xff\xff", "is an Arrow stream, which is not read", EXPORT_HINT),
    (b"ARROW1", "is an Arrow file, which is not read", EXPORT_HINT),
    (b"PAR1", "is a single Parquet file", "give the folder that nsys export --type parquetdir wrote"),
)
_CONTROL_BYTES = frozenset(range(32)) - frozenset(b"\t\n\v\f\r\x1b")


def identify(path: Path) -> Kind:
    """Return what `path` is.

    Raises:
        TraceError: It cannot be read, is damaged or incomplete, or nsys did not write it.
    """
    try:
        str(path.absolute()).encode()
    except UnicodeEncodeError:
        raise TraceError(
            f"{path} has a name that is not UTF-8, which DuckDB does not open",
            "give it another: ln -s FILE trace.sqlite",
        ) from None
    if is_parquet_folder(path):
        return Kind.PARQUET
    head = _read_head(path)
    if head.startswith(_SQLITE_MAGIC):
        _check_export(path, head)
        return Kind.SQLITE
    if head.startswith(_REPORT_MAGIC):
        return Kind.REPORT
    if head[8:12] == _DUCKDB_MAGIC:
        return Kind.DATABASE
    problem, hint = _describe_foreign_file(path, head)
    if problem:
        raise TraceError(f"{path} {problem}", hint)
    if path.suffix in REPORT_SUFFIXES:
        return Kind.REPORT  # an unknown beginning, which nsys may know
    if path.suffix == ".sqlite":
        raise TraceError(f"{path} is damaged: it does not begin as an SQLite file does", EXPORT_HINT)
    raise TraceError(f"{path} is neither an nsys report nor an SQLite export of one", _PROFILE_HINT)


def is_parquet_folder(path: Path) -> bool:
    """Return whether `path` is a folder that `nsys export --type parquetdir` or our own ``convert`` wrote.

    A folder of facts has a manifest, and stays one if it lost a table: then it is refused with the name of that table.
    """
    files = [path / "StringIds.parquet", path / "raw" / "StringIds.parquet"]
    if path.suffix == facts_folder.SUFFIX:
        files.append(path / facts_folder.MANIFEST)
    try:
        return any(file.is_file() for file in files)
    except OSError:
        return False


def is_export(path: Path) -> bool:
    """Return whether `path` is a complete SQLite export."""
    try:
        return path.is_file() and identify(path) is Kind.SQLITE
    except (OSError, TraceError):
        return False


def make_scannable(
    path: Path, note: Callable[[str], None] = lambda _: None, *, use_cache: bool = True, keep_private: bool = False
) -> Path:
    """Return an SQLite export that can be scanned in place: `path`, or a copy of it in the cache.

    nsys writes tables only, and leaves no journal. A file that another tool has opened since may be in WAL mode, or
    have an unfinished journal next to it. SQLite would then write next to the file, even to read it, and fail where it
    cannot. And a file with more than tables could make DuckDB evaluate SQL from the file (`tables_only`).

    Without `use_cache`, the copy is temporary and removed when the process ends. Private rows are left out of it,
    unless `keep_private` is set.

    Raises:
        TraceError: The copy cannot be made.
    """
    for suffix in ("-wal", "-journal"):
        # The name may be too long for the file system, which makes pathlib raise an error.
        journal_path = f"{os.path.realpath(path)}{suffix}"
        is_regular = os.path.isfile(journal_path) and not os.path.islink(journal_path)  # noqa: PTH113, PTH114
        if os.path.lexists(journal_path) and not is_regular:
            raise TraceError(
                f"{journal_path} is not a regular file, and SQLite would open it", "remove it, or copy the trace"
            )
    try:
        path = _copy_if_not_tables_only(
            _copy_if_journaled(path, note, use_cache=use_cache, keep_private=keep_private),
            note,
            use_cache=use_cache,
            keep_private=keep_private,
        )
    except OSError as error:
        raise TraceError(
            f"{path} can be neither read in place nor copied to the cache: {error.strerror}",
            f"point ${cache_folder.FOLDER_VARIABLE} to a folder with room for it",
        ) from error
    return path


def _copy_if_journaled(path: Path, note: Callable[[str], None], *, use_cache: bool, keep_private: bool) -> Path:
    real = Path(os.path.realpath(path))
    with real.open("rb") as stream:
        header = stream.read(100)
    journals = [suffix for suffix in ("-wal", "-journal") if _file_bytes(Path(f"{real}{suffix}"))]
    if header[18:20] != b"\x02\x02" and not journals:
        return path
    keys = [cache_folder.key(Path(f"{real}{suffix}")) for suffix in journals]
    target = (
        cache_folder.folder(use_cache=use_cache) / f"{cache_folder.key(real, *keys, *_key_suffix(keep_private))}.sqlite"
    )
    if not (cache_entries.use(target) and is_export(target)):
        with cache_entries.make_entry(target, "SQLite copy", path) as copy:
            _copy_at_rest(real, copy, journals)
            if not keep_private:
                private.remove_private(copy)
    note(f"reading a copy of {path}: SQLite would write next to the file itself (it is in WAL mode, or has a journal)")
    return target


def _copy_if_not_tables_only(path: Path, note: Callable[[str], None], *, use_cache: bool, keep_private: bool) -> Path:
    with explain_damage(path):
        if tables_only.has_only_tables(path):
            return path
    target = (
        cache_folder.folder(use_cache=use_cache)
        / f"{cache_folder.key(path, 'tables only', *_key_suffix(keep_private))}.sqlite"
    )
    left_out: list[str] = []
    if not (cache_entries.use(target) and is_export(target)):
        with cache_entries.make_entry(target, "SQLite copy", path) as copy:
            left_out = tables_only.copy_as_tables(path, copy)
            if not keep_private:
                private.remove_private(copy)
    note(f"reading a copy of {path} that has tables only: it has views or other things in it that nsys does not write")
    if left_out:
        note(
            f"{path} has views that are not read, because they refer to missing tables or to themselves: "
            f"{', '.join(left_out)}"
        )
    return target


def _key_suffix(keep_private: bool) -> list[str]:  # noqa: FBT001 - the callers pass it by its name
    return [] if keep_private else [private.CACHE_KEY_PART]


def _read_head(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise TraceError(f"{path} is a folder, not a trace", "name the .nsys-rep or .sqlite file")
        if os.path.exists(path) and not path.is_file():  # noqa: PTH110 - the same
            raise TraceError(f"{path} is not a regular file", "write the trace to a file and name that")
        with path.open("rb") as stream:
            return stream.read(_HEAD_BYTES)
    except FileNotFoundError:
        problem = f"links to {path.readlink()}, which does not exist" if path.is_symlink() else "does not exist"
        raise TraceError(f"{path} {problem}", _suggest_paths(path)) from None
    except OSError as error:
        raise TraceError(
            f"{path} cannot be read: {error.strerror}", f"check its permissions: ls -l {quote(str(path))}"
        ) from error


def _copy_at_rest(source: Path, copy: Path, journals: list[str]) -> None:
    import sqlite3

    if "-journal" in journals and _names_other_file(Path(f"{source}-journal")):
        raise TraceError(f"the journal of {source} is one of several files, which SQLite would look for", EXPORT_HINT)
    for suffix in ("", *journals):
        copy_file(f"{source}{suffix}", f"{copy}{suffix}")
    with explain_damage(source), closing(sqlite3.connect(copy)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()  # applies the journal
        connection.execute("PRAGMA journal_mode = DELETE").fetchall()


def _names_other_file(journal: Path) -> bool:
    """Return whether a journal ends with the name of another file, which SQLite would open and remove."""
    with journal.open("rb") as stream:
        stream.seek(max(0, _file_bytes(journal) - len(_JOURNAL_MAGIC)))
        return stream.read() == _JOURNAL_MAGIC


def _check_export(path: Path, head: bytes) -> None:
    if len(head) >= 100:
        (page_size,) = struct.unpack_from(">H", head, 16)
        changes, page_count = struct.unpack_from(">II", head, 24)
        (valid_for,) = struct.unpack_from(">I", head, 92)
        expected = (65536 if page_size == 1 else page_size) * page_count
        # SQLite's own rule: the page count is valid only if the last program that wrote the file maintains it.
        if changes == valid_for and _file_bytes(path) < expected:
            raise TraceError(f"{path} is truncated: {_file_bytes(path):,} of {expected:,} bytes", _COPY_HINT)
    tables = _list_tables(path)
    if not tables:
        tables = _list_tables(make_scannable(path, use_cache=False))  # all pages may still be in the journal
    if not any(table in _EXPORT_TABLES or table.startswith(_EXPORT_PREFIXES) for table in tables):
        raise TraceError(f"{path} is an SQLite file, but not an export of nsys", _PROFILE_HINT)
    if "StringTable" in tables and "StringIds" not in tables:
        raise TraceError(f"{path} was written by nvprof, which is not read", _PROFILE_HINT)
    if tables <= _FIRST_TABLES:
        raise TraceError(f"{path} is an incomplete export: it has no events", EXPORT_HINT)


def _list_tables(path: Path) -> set[str]:
    with explain_damage(path), open_read_only(path) as connection:
        connection.text_factory = lambda text: text.decode("utf-8", "replace")
        names = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        return {name for (name,) in names}


def _describe_foreign_file(path: Path, head: bytes) -> tuple[str, str]:
    """Return what a file is that begins neither as a report nor as an SQLite file, and a hint; empty if unknown."""
    if not head:
        return "is empty", "profile or copy again; the disk may have been full"
    for magic, description, hint in _FOREIGN_FORMATS:
        if head.startswith(magic):
            return description, hint.replace("FILE", quote(path.name))
    if not any(head[:4096]):
        hint = EXPORT_HINT if path.suffix == ".sqlite" else "profile or copy again; the disk may have been full"
        return "begins with zeros: nsys was interrupted while writing it, or the disk was full", hint
    if path.suffix == ".qdstrm":
        return (
            "is a capture that was not yet converted to a report",
            f"import it with nsys's own tool: QdstrmImporter -i {quote(path.name)}",
        )
    return _describe_text_file(head) if _CONTROL_BYTES.isdisjoint(head) else ("", "")


def _describe_text_file(head: bytes) -> tuple[str, str]:
    """Return what a text file is, and what to type next."""
    if b'"traceEvents"' in head or b'"ph":' in head.replace(b" ", b""):
        return "is a Chrome trace (as torch.profiler writes it), not a trace of nsys", _PROFILE_HINT
    if b'"Kernel Name"' in head and b'"ID"' in head:
        return "is a page of Nsight Compute, not a trace of nsys", "nsys-insight ncu report FILE"
    if head.lstrip()[:1] in (b"{", b"["):
        return "is a JSON file, not a trace", EXPORT_HINT
    return "is a text file, not a trace", "give the .nsys-rep that nsys wrote, or its .sqlite export"


def _suggest_paths(path: Path) -> str:
    """Return a hint with similar names for a file that does not exist."""
    names: list[str] = []
    with suppress(OSError):
        names = sorted(file.name for file in path.parent.iterdir() if file.suffix in (*REPORT_SUFFIXES, ".sqlite"))
    likely = [name for name in names if name.startswith(f"{path.name}.")]
    likely = likely or [name for name in names if Path(name).stem == path.stem] or find_nearest(path.name, names, 3)
    return (
        format_suggestion(str(path.with_name(name)) for name in likely)
        or f"check the path: ls {quote(str(path.parent))}"
    )


def _file_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
