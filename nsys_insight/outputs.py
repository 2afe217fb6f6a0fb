"""Output files of commands: written completely or not at all, and never over an input."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight.errors import UsageError, cannot_write_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# The first bytes of files that are not text. A file never replaces one of another kind, which another program wrote.
_KINDS = {
    b"SQLite format 3\0": "a SQLite file", b"PAR1": "a Parquet file", b"\x89PNG": "a picture",
    b"NVIDIA Tegra": "a report of nsys", b"NVR\0": "a report of ncu",
}  # fmt: skip
_TEXT_SUFFIXES = {
    "", ".txt", ".log", ".md", ".markdown", ".csv", ".json", ".jsonl", ".ndjson", ".html", ".htm", ".svg",
    ".xml", ".sarif",
}  # fmt: skip
# Temporary files that were not modified for this long belong to killed processes.
_STALE_S = 60 * 60
_SIDE_SUFFIXES = ("-wal", "-journal", "-shm", ".wal")


def check_target(target: Path | None, inputs: Iterable[Path] = ()) -> None:
    """Refuse to write over an input: a file, its side files, or anything in an input folder. None means stdout.

    Raises:
        UsageError: The target is one of the inputs.
    """
    if target is None:
        return
    real = target.resolve()
    for source in inputs:
        trace = source.resolve()
        side_files = {Path(f"{trace}{suffix}") for suffix in _SIDE_SUFFIXES}
        is_same = target.exists() and source.exists() and target.samefile(source)
        if is_same or real == trace or real in side_files or trace in real.parents:
            raise UsageError(f"{target} is the trace itself, or part of the input", "name another file with -o")


def refuse_existing(target: Path, *, force: bool) -> None:
    """Refuse a target that exists, unless `force` is set. A link to nothing exists: a file would be written elsewhere.

    A pipe or a device is refused with `force`, too: a pipe without a reader would wait for ever.

    Raises:
        UsageError: The target exists, or its name is impossible.
    """
    try:
        if target.exists() and not target.is_file() and not target.is_dir():
            raise UsageError(f"{target} is not a regular file", "choose another name with -o")
        if not force and (target.exists() or target.is_symlink()):
            raise UsageError(f"{target} exists already", "choose another name with -o, or overwrite it with --force")
    except OSError as error:
        raise cannot_write_error(target, error) from None


@contextmanager
def open_output(target: Path, inputs: Iterable[Path] = (), *, force: bool = False) -> Iterator[Path]:
    """Yield a temporary path in the folder of `target`. It replaces `target` if the block succeeds; else it is removed.

    A symbolic link stays, and its target is written. A target that is not a regular file, such as a pipe, receives the
    bytes.

    Raises:
        UsageError: The target is one of the inputs, exists with another kind of content, or cannot be written.
    """
    check_target(target, inputs)
    try:
        real = target.resolve()
        folder = real.parent if _is_replaced(target) else None
        prefix, suffix = f".nsys-insight-{real.stem[:40]}-", real.suffix[-20:]
        if folder:
            _remove_stale_files(folder, prefix, suffix)
        handle, name = tempfile.mkstemp(dir=folder, prefix=prefix, suffix=suffix)
        os.close(handle)
    except OSError as error:
        raise cannot_write_error(target, error) from None
    temporary = Path(name)
    try:
        yield temporary
        move_to_target(temporary, target, force=force)
    except OSError as error:
        raise cannot_write_error(target, error) from None
    finally:
        temporary.unlink(missing_ok=True)


def move_to_target(finished: Path, target: Path, *, force: bool = False) -> None:
    """Move a finished file to its target.

    Raises:
        UsageError: The target has another kind of content, and `force` is not set.
        OSError: The target cannot be written.
    """
    real = target.resolve()
    if not _is_replaced(target):
        # A file that the shell opened as stdout keeps what is in it.
        with finished.open("rb") as source, target.open("ab") as stream:
            shutil.copyfileobj(source, stream)
        return
    if real.exists() and not force and real.stat().st_size and _detect_kind(real, real) != _detect_kind(finished, real):
        kind = _detect_kind(real, real) or "a file that nsys-insight did not write"
        raise UsageError(
            f"{target} already exists, and is {kind}", "name another file with -o, or remove this one first"
        )
    finished.chmod(_read_mode(real))
    finished.replace(real)


def write_output(target: Path, content: str | bytes, inputs: Iterable[Path] = ()) -> None:
    """Write a text or bytes to a target.

    Raises:
        UsageError: See `open_output`.
    """
    with open_output(target, inputs) as temporary:
        temporary.write_bytes(content if isinstance(content, bytes) else content.encode())


def _remove_stale_files(folder: Path, prefix: str, suffix: str) -> None:
    """Remove the temporary files of processes that were killed while they wrote this target."""
    names = re.compile(f"{re.escape(prefix)}[a-z0-9_]{{8}}{re.escape(suffix)}")
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if names.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    if abs(time.time() - entry.stat().st_mtime) > _STALE_S:
                        Path(entry.path).unlink()


def _is_replaced(target: Path) -> bool:
    """Check whether a target is replaced by a new file: it is a regular file, or does not exist.

    An open file of this process (/dev/stdout, /dev/fd/3) is not: another program reads it, or wrote to it before.

    Raises:
        OSError: It is a folder.
    """
    with suppress(FileNotFoundError):
        mode = target.stat().st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(21, "Is a directory", str(target))
        return stat.S_ISREG(mode) and not _is_open_file(target)
    return True


def _is_open_file(path: Path) -> bool:
    """Check whether a path, or what it links to, is the name of an open file of this process."""
    folders = {Path("/dev/fd"), Path("/proc/self/fd").resolve()}
    while path.parent.resolve() not in folders:
        if not path.is_symlink():
            return False
        path = path.parent / path.readlink()
    return True


def _detect_kind(file: Path, target: Path) -> str:
    """Detect the kind of a file from its first bytes; text also needs a suffix of text. "" for an unknown kind."""
    with file.open("rb") as stream:
        head = stream.read(4096)
    if head[8:12] == b"DUCK":
        return "a DuckDB file"
    for magic, kind in _KINDS.items():
        if head.startswith(magic):
            return kind
    if b"\0" in head or target.suffix.lower() not in _TEXT_SUFFIXES:
        return "" if file == target else "new"
    return "text"


def _read_mode(real: Path) -> int:
    """Return the permissions of the file, or those of a new file; temporary files belong to their owner only."""
    with suppress(FileNotFoundError):
        return real.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
