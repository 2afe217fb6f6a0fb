"""Output files of commands: written completely or not at all, and never over an input."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, TextIO

from nsys_insight import cache_folder, own_files
from nsys_insight.errors import UsageError, cannot_write_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Whether outputs are recorded in the cache folder: not with --no-cache.
uses_cache = ContextVar("uses_cache", default=True)
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
    """Yield a path in a temporary folder next to `target`. The file replaces `target` if the block succeeds.

    A symbolic link stays, and its target is written. A target that is not a regular file, such as a pipe, receives the
    bytes.

    Raises:
        UsageError: The target is one of the inputs, cannot be written, or is a file that this program did not write.
    """
    check_target(target, inputs)
    try:
        real = target.resolve()
        refuse_foreign(target, force=force)
        with cache_folder.make_work_path(real) if _is_replaced(target) else _make_temporary_path(real) as temporary:
            yield temporary
            move_to_target(temporary, target, force=force)
        if _is_replaced(target):
            remember(real)
    except OSError as error:
        raise cannot_write_error(target, error) from None


@contextmanager
def open_text(target: Path | None, inputs: Iterable[Path] = (), *, force: bool = False) -> Iterator[TextIO]:
    """Yield a stream of text: that of a target, as in `open_output`, or stdout without one.

    Raises:
        UsageError: See `open_output`.
    """
    if target is None:
        yield sys.stdout
        return
    with open_output(target, inputs, force=force) as path, path.open("w", encoding="utf-8", newline="") as stream:
        yield stream


@contextmanager
def _make_temporary_path(real: Path) -> Iterator[Path]:
    with cache_folder.use_temporary_folder() as folder:
        yield folder.claim(real.name)


def move_to_target(finished: Path, target: Path, *, force: bool = False) -> None:
    """Move a finished file to its target.

    Raises:
        UsageError: The target is a file that this program did not write, and `force` is not set.
        OSError: The target cannot be written.
    """
    real = target.resolve()
    if not _is_replaced(target):
        # A file that the shell opened as stdout keeps what is in it.
        with finished.open("rb") as source, target.open("ab") as stream:
            shutil.copyfileobj(source, stream)
        return
    refuse_foreign(target, force=force)
    finished.chmod(_read_mode(real))
    own_files.overwrite(finished, real)


def refuse_foreign(target: Path, *, force: bool = False) -> None:
    """Refuse to replace a file that this program cannot prove to be its own.

    It is, if a manifest lists it (`own_files`), or if it has the content that this program wrote there last. An empty
    file holds nothing.

    Raises:
        UsageError: The file is another's, or was changed since, and `force` is not set.
        OSError: It cannot be read, or is a folder.
    """
    real = target.resolve()
    if force or not real.exists() or not _is_replaced(target) or not real.stat().st_size or own_files.is_own(real):
        return
    record = _find_record(real)
    with suppress(OSError):
        if record and record.read_text(encoding="utf-8") == _identify(real):
            return
    raise UsageError(
        f"{target} exists already, and nsys-insight did not write it, or it was changed since",
        f"name another file with -o, or remove it first: rm {quote(str(target))}",
    )


def remember(output: Path) -> None:
    """Record the content of an output in the cache folder: the next output of this name may replace it."""
    record = _find_record(output)
    with suppress(OSError):
        if record:
            with cache_folder.write_atomically(record) as path:
                path.touch(mode=0o600)
                path.write_text(_identify(output), encoding="utf-8")


def _identify(output: Path) -> str:
    """Return what an output is recognized by: its content. Only a sample of a big one is read, so its times count, too.

    Raises:
        OSError: The file cannot be read.
    """
    status = output.stat()
    is_sampled = status.st_size > cache_folder.MAX_HASHED_BYTES
    times = f" {status.st_mtime_ns} {status.st_ctime_ns}" if is_sampled else ""
    return cache_folder.hash_content(output) + times


def _find_record(output: Path) -> Path | None:
    """Return the file with the record of an output; None where the cache folder is not used."""
    if not uses_cache.get():
        return None
    with suppress(OSError):
        return cache_folder.folder() / f"{cache_folder.digest('output', str(output))}.last"
    return None


def write_output(target: Path, content: str | bytes, inputs: Iterable[Path] = (), *, force: bool = False) -> None:
    """Write a text or bytes to a target.

    Raises:
        UsageError: See `open_output`.
    """
    with open_output(target, inputs, force=force) as temporary:
        temporary.write_bytes(content if isinstance(content, bytes) else content.encode())


def write_listed(target: Path, content: str) -> None:
    """Write a file of a folder that has a manifest of its own (`own_files.adopt`), which then lists it.

    Raises:
        UsageError: See `open_output`.
    """
    try:
        if not os.path.lexists(target):
            own_files.claim(target.absolute())
    except OSError as error:
        raise cannot_write_error(target, error) from None
    write_output(target, content)


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


def _read_mode(real: Path) -> int:
    """Return the permissions of the file, or those of a new file; temporary files belong to their owner only."""
    with suppress(FileNotFoundError):
        return real.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
