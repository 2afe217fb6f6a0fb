"""The one folder that this program writes to unasked: entries named by what they were made of, published whole."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import threading
import time
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight.paths import expanded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

FOLDER_VARIABLE = "NSYS_INSIGHT_CACHE_DIR"

_SAMPLE_BYTES = 1 << 16
_PAGE_BYTES, _SEALED_PAGES = 4096, 32
_WORK_PREFIX = ".nsys-insight-"
_TEMPORARY_PREFIX = "nsys-insight-"
_LOCK = ".lock"
_DAY_S = 24 * 60 * 60
# A process needs a moment between making its folder and the file in it that it locks.
_GRACE_S = 60
_MOST_WAIT_S = 2
# Who is in a block that tidies up, and what was there before the first one of them.
_TIDYING, _tidy = threading.Lock(), list[None]()
_before = set[Path]()


def location() -> Path:
    """Return where the cache folder is, or will be."""
    chosen = os.environ.get(FOLDER_VARIABLE)
    if chosen:
        path = expanded(chosen)
        return path if chosen.startswith("~") else path.absolute()
    from platformdirs import user_cache_path

    return user_cache_path("nsys-insight", appauthor=False)


def folder(*, lasting: bool = True) -> Path:
    """Return the cache folder, made private to the user when it is first asked for.

    Without `lasting`, return a temporary one in its place, which is removed when the process ends.

    Raises:
        OSError: It cannot be made, or is not the user's alone (`refusal`). Whoever can do without the cache goes on
            without it.
    """
    path = location() if lasting else temporary()
    if not path.is_absolute():
        # A user without a home folder, as in some containers: "~" would become a folder of that name right here.
        raise FileNotFoundError(errno.ENOENT, "there is no home folder", str(path))
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if lasting:
        if why := refusal():
            raise PermissionError(errno.EPERM, why, str(path))
        _sweep(path, _WORK_PREFIX)
    return path


def refusal() -> str:
    """Say why the cache folder is not used though it is there; empty if it is the user's alone, or is not there.

    Others could put files into a folder of theirs, or one that they may write to, and they would be believed.
    """
    path = location()
    if sys.platform == "win32" or not path.is_dir():
        return ""
    status, me = path.stat(), os.geteuid()
    if status.st_uid != me or path.lstat().st_uid not in (me, 0):
        return "it belongs to another user"
    return "other users may write to it" if status.st_mode & 0o022 else ""


@cache
def temporary() -> Path:
    """Return a folder of this process among the temporary ones, which is removed when the process ends.

    It is the user's alone and nobody can guess its name. What processes that were killed left there is removed.

    Raises:
        OSError: It cannot be made.
    """
    import atexit
    import tempfile

    _sweep(Path(tempfile.gettempdir()), _TEMPORARY_PREFIX)
    path, held = _claimed(lambda: Path(tempfile.mkdtemp(prefix=_TEMPORARY_PREFIX)))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    atexit.register(held.close)
    return path


@contextmanager
def tidied() -> Iterator[None]:
    """Remove what the block put among the temporary files of this process, which may be as big as the trace.

    Of blocks that are under way at a time, in several threads, the last one to end removes what all of them left.
    """
    with _TIDYING:
        if not _tidy:
            _before.clear()
            _before.update(temporary().iterdir())
        _tidy.append(None)
    try:
        yield
    finally:
        with _TIDYING:
            _tidy.pop()
            for left in set(temporary().iterdir()) - _before if not _tidy else ():
                if left.is_dir() and not left.is_symlink():
                    shutil.rmtree(left, ignore_errors=True)
                else:
                    left.unlink(missing_ok=True)


def digest(*parts: str | bytes) -> str:
    """Return 32 hex digits that stand for `parts`; an entry's file name begins with them."""
    import hashlib

    hashed = hashlib.blake2b(digest_size=16)
    for part in map(os.fsencode, parts):
        hashed.update(b"%d:" % len(part) + part)
    return hashed.hexdigest()


def key(path: Path, *extra: str) -> str:
    """Return 32 hex digits that change when the file (or folder of files) at `path` does, or any of `extra`.

    The identity is the real path, inode, size and time of change, and a sample of the content, because a copy may keep
    the times of what it replaces.

    Raises:
        OSError: The file cannot be read.
    """
    real = Path(os.path.realpath(path))
    files = sorted(file for file in real.iterdir() if file.is_file()) if real.is_dir() else [real]
    return digest(str(real), *(part for file in files for part in _identity(file)), *extra)


def _identity(file: Path) -> list[str | bytes]:
    with file.open("rb") as stream:
        status = os.fstat(stream.fileno())
        head = stream.read(_SAMPLE_BYTES)
        stream.seek(max(0, status.st_size - _SAMPLE_BYTES))
        tail = stream.read(_SAMPLE_BYTES)
    return [file.name, f"{status.st_ino} {status.st_size} {status.st_mtime_ns}", head, tail]


def seal(file: Path) -> str:
    """Return 32 hex digits that change when a file of the cache is changed by something else than this program.

    They are of its size, its time of change, and a sample of its content: to read all of it would take as long as some
    questions do. When it was used last is no part of it.

    Raises:
        OSError: The file cannot be read.
    """
    with file.open("rb") as stream:
        status = os.fstat(stream.fileno())
        pages = []
        for part in range(_SEALED_PAGES):
            stream.seek(max(0, status.st_size - _PAGE_BYTES) * part // (_SEALED_PAGES - 1))
            pages.append(stream.read(_PAGE_BYTES))
    return digest(f"{status.st_size} {status.st_mtime_ns}", *pages)


@contextmanager
def building(target: Path) -> Iterator[Path]:
    """Yield a path to write to, which becomes `target` when the block ends well and vanishes when it does not.

    The path lies in a folder of its own (`path.parent`) beside `target`, where the block may keep other temporary
    files. What processes that were killed left behind there is removed first. Two processes that build the same target
    do not disturb each other; the last one's stays. An entry of the cache is built by `cache_entries.making`.

    Raises:
        OSError: The folder of `target` cannot be written to, or the disk is full.
    """
    with working(target) as path:
        yield path
        path.replace(target)


@contextmanager
def working(target: Path) -> Iterator[Path]:
    """Do as `building` does, but for the last step: what becomes of the path is for the block to say."""
    _sweep(target.parent, _WORK_PREFIX)

    def make() -> Path:
        work = target.parent / f"{_WORK_PREFIX}{os.getpid()}-{os.urandom(8).hex()}"
        work.mkdir(mode=0o700)
        return work

    work, held = _claimed(make)
    try:
        with held:
            yield work / target.name
    finally:
        shutil.rmtree(work, ignore_errors=True)


def touch(entry: Path) -> None:
    """Mark an entry as used now.

    The time of change is kept: it is part of the entry's own identity, on which other entries may rest.
    """
    with suppress(OSError):
        os.utime(entry, ns=(time.time_ns(), entry.stat().st_mtime_ns))


def lock(descriptor: int, *, shared: bool = False) -> bool | None:
    """Lock a file until it is closed; False if another process's lock forbids it, None where locks do not work."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Let no other process that asks for this do the block at the same time, for the moment that it takes.

    Where locks do not work, or somebody does not end, the block is done all the same.
    """
    descriptor = None
    try:
        if sys.platform != "win32":
            with suppress(OSError):
                descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
                ends = time.monotonic() + _MOST_WAIT_S
                while lock(descriptor) is False and time.monotonic() < ends:
                    time.sleep(0.001)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _claimed(make: Callable[[], Path]) -> tuple[Path, BinaryIO]:
    """Make a folder, and return it with a file in it that is locked as long as it is open: somebody works here."""
    while True:
        folder = make()
        with suppress(FileNotFoundError):  # before it was locked, another process took it for one that was left
            held = (folder / _LOCK).open("wb")
            if lock(held.fileno()) is not False and (folder / _LOCK).exists():
                return folder, held
            held.close()


def _sweep(parent: Path, prefix: str) -> None:
    """Remove the folders with this prefix in which no process works any more, as those that were killed leave them."""
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    _remove_if_left(Path(entry.path))


def _remove_if_left(work: Path) -> None:
    """Remove a folder of this user in which no process works any more.

    A lock tells it, and not a process id: the folder may be shared by containers and machines, each of which counts its
    own. Where locks do not work, a day without change does; the clock may have been set back meanwhile.
    """
    status = work.stat()
    if sys.platform != "win32" and status.st_uid != os.geteuid():
        return
    least_age_s = _GRACE_S
    with suppress(FileNotFoundError), (work / _LOCK).open("rb+") as stream:
        locked = lock(stream.fileno())
        if locked:
            shutil.rmtree(work, ignore_errors=True)
        if locked is not None:
            return
        least_age_s = _DAY_S
    if abs(time.time() - status.st_mtime) > least_age_s:
        shutil.rmtree(work, ignore_errors=True)
