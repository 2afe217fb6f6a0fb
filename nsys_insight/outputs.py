"""Every file that a command writes: where it was asked for and whole, or nowhere; never over what was read."""

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

from nsys_insight.errors import UsageError, cannot_write

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# How files begin that are no text. A file of one kind is not written over one of another, which something else made.
_KINDS = {
    b"SQLite format 3\0": "a SQLite file", b"PAR1": "a Parquet file", b"\x89PNG": "a picture",
    b"NVIDIA Tegra": "a report of nsys", b"NVR\0": "a report of ncu",
}  # fmt: skip
_TEXT_SUFFIXES = {
    "", ".txt", ".log", ".md", ".markdown", ".csv", ".json", ".jsonl", ".ndjson", ".html", ".htm", ".svg",
    ".xml", ".sarif",
}  # fmt: skip
# What was not written to for so long, nobody writes.
_LEFT_S = 60 * 60
_BESIDE = ("-wal", "-journal", "-shm", ".wal")


def check(target: Path | None, inputs: Iterable[Path] = ()) -> None:
    """Refuse to write over what is read: a file, what belongs to it, or anything in a folder. None is stdout.

    Raises:
        UsageError: It is one of the inputs.
    """
    if target is None:
        return
    real = target.resolve()
    for read in inputs:
        trace = read.resolve()
        beside = {Path(f"{trace}{suffix}") for suffix in _BESIDE}
        same = target.exists() and read.exists() and target.samefile(read)
        if same or real == trace or real in beside or trace in real.parents:
            raise UsageError(f"{target} is the trace itself, or part of the input", "name another file with -o")


@contextmanager
def whole(target: Path, inputs: Iterable[Path] = (), *, force: bool = False) -> Iterator[Path]:
    """Give a path to write to, beside `target`; it becomes `target` when the block ends well, and else vanishes.

    A link stays one, and what it names is written. What is no regular file, such as a pipe, gets the bytes.

    Raises:
        UsageError: It is one of the inputs, or is there and of another kind, or cannot be written.
    """
    check(target, inputs)
    try:
        real = target.resolve()
        folder = real.parent if _is_replaced(real) else None
        prefix, suffix = f".nsys-insight-{real.stem[:40]}-", real.suffix[-20:]
        if folder:
            _forget_the_killed(folder, prefix, suffix)
        handle, name = tempfile.mkstemp(dir=folder, prefix=prefix, suffix=suffix)
        os.close(handle)
    except OSError as error:
        raise cannot_write(target, error) from None
    made = Path(name)
    try:
        yield made
        place(made, target, force=force)
    except OSError as error:
        raise cannot_write(target, error) from None
    finally:
        made.unlink(missing_ok=True)


def place(made: Path, target: Path, *, force: bool = False) -> None:
    """Put a finished file where it was asked for.

    Raises:
        UsageError: What is there is of another kind, and `force` does not say to replace it.
        OSError: It cannot be written.
    """
    real = target.resolve()
    if not _is_replaced(real):
        with made.open("rb") as source, real.open("wb") as stream:
            shutil.copyfileobj(source, stream)
        return
    if real.exists() and not force and real.stat().st_size and _kind(real, real) != _kind(made, real):
        what = _kind(real, real) or "a file that nsys-insight did not write"
        raise UsageError(
            f"{target} already exists, and is {what}", "name another file with -o, or remove this one first"
        )
    made.chmod(_mode_of(real))
    made.replace(real)


def save(target: Path, content: str | bytes, inputs: Iterable[Path] = ()) -> None:
    """Write a text, or bytes.

    Raises:
        UsageError: As `whole`.
    """
    with whole(target, inputs) as made:
        made.write_bytes(content if isinstance(content, bytes) else content.encode())


def _forget_the_killed(folder: Path, prefix: str, suffix: str) -> None:
    """Remove what processes left that were killed while they wrote this file: nobody writes to it any more."""
    names = re.compile(f"{re.escape(prefix)}[a-z0-9_]{{8}}{re.escape(suffix)}")
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if names.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    if abs(time.time() - entry.stat().st_mtime) > _LEFT_S:
                        Path(entry.path).unlink()


def _is_replaced(real: Path) -> bool:
    """Tell whether a path is replaced as a whole: a regular file, or none yet.

    Raises:
        OSError: It is a folder.
    """
    with suppress(FileNotFoundError):
        mode = real.stat().st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(21, "Is a directory", str(real))
        return stat.S_ISREG(mode)
    return True


def _kind(file: Path, named: Path) -> str:
    """What a file is, by how it begins: text only under a name that says so; empty if it is something else."""
    with file.open("rb") as stream:
        head = stream.read(4096)
    if head[8:12] == b"DUCK":
        return "a DuckDB file"
    for magic, kind in _KINDS.items():
        if head.startswith(magic):
            return kind
    if b"\0" in head or named.suffix.lower() not in _TEXT_SUFFIXES:
        return "" if file == named else "new"
    return "text"


def _mode_of(real: Path) -> int:
    """The rights that the file has, or that a new file would have: temporary ones are their owner's alone."""
    with suppress(FileNotFoundError):
        return real.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
