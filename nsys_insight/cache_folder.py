"""The cache folder, the only one that this program writes to unasked: entries are named by their inputs."""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading
import time
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight import own_files
from nsys_insight.paths import expand_home

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from nsys_insight.own_files import OwnFolder

FOLDER_VARIABLE = "NSYS_INSIGHT_CACHE_DIR"

_SAMPLE_BYTES = 1 << 16
_PAGE_BYTES, _SAMPLED_PAGES = 4096, 32
MAX_HASHED_BYTES = 1 << 26
WORK_PREFIX = ".nsys-insight-"
TEMPORARY_PREFIX = "nsys-insight-"
_MAX_WAIT_S = 2
# DuckDB chooses the names of the files that queries spill to.
_SPILL_FILES = "spill-*/duckdb_temp_*"
# The blocks that clean up the temporary folder, and the paths in it before the first of them began.
_cleanup_lock, _cleanup_blocks = threading.Lock(), list[None]()
_paths_before_cleanup = set[Path]()


def location() -> Path:
    """Return where the cache folder is, or will be."""
    path_text = os.environ.get(FOLDER_VARIABLE)
    if path_text:
        path = expand_home(path_text)
        return path if path_text.startswith("~") else path.absolute()
    from platformdirs import user_cache_path

    return user_cache_path("nsys-insight", appauthor=False)


def folder(*, use_cache: bool = True) -> Path:
    """Return the cache folder. Create it on first use, private to the user.

    Without `use_cache`, return a temporary folder instead, which is removed when the process ends.

    Raises:
        OSError: It cannot be created, or other users have access to it (`refusal_reason`). Callers that do not need
            the cache go on without it.
    """
    path = location() if use_cache else temporary_folder()
    if not path.is_absolute():
        # A user without a home folder, as in some containers: "~" would become a folder of that name in the current
        # folder.
        raise FileNotFoundError(errno.ENOENT, "there is no home folder", str(path))
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if use_cache:
        if reason := refusal_reason():
            raise PermissionError(errno.EPERM, reason, str(path))
        own_files.remove_abandoned(path, WORK_PREFIX)
    return path


def claim(name: str) -> Path:
    """List a file of the cache folder that is about to be made, and return its path.

    Raises:
        OSError: As `folder`, or a file is there that this program did not make.
    """
    path = folder() / name
    own_files.adopt(path.parent)
    own_files.claim(path)
    return path


def refusal_reason() -> str:
    """Return why the existing cache folder is not used; empty if it is private to the user, or missing.

    Other users could put files into a folder that they own or may write to, and those files would be trusted. In a
    folder above it, they could replace the cache folder by their own, unless the sticky bit forbids it.
    """
    path = location()
    if sys.platform == "win32" or not path.is_dir():
        return ""
    status, user_id = path.stat(), os.geteuid()
    if status.st_uid != user_id or path.lstat().st_uid not in (user_id, 0):
        return "it belongs to another user"
    if status.st_mode & 0o022:
        return "other users may write to it"
    for parent in dict.fromkeys([*path.resolve().parents, *path.parents]):
        status = parent.stat()
        if status.st_uid not in (user_id, 0):
            return f"{parent} above it belongs to another user"
        if status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX:
            return f"other users may write to {parent} above it"
    return ""


def temporary_folder() -> Path:
    """Return this process's own folder among the temporary files. It is removed when the process ends.

    It is private to the user and its name cannot be guessed. Folders that killed processes left behind are removed
    first. Files in it are listed before they are made (`claim_temporary`).

    Raises:
        OSError: It cannot be created.
    """
    return _open_temporary_folder().path


def claim_temporary(name: str) -> Path:
    """List a file of the temporary folder that is about to be made, and return its path. The name is made unique.

    Raises:
        OSError: The folder cannot be created.
    """
    stem, dot, suffix = name.partition(".")
    return _open_temporary_folder().claim(f"{stem}-{os.urandom(4).hex()}{dot}{suffix}")


def claim_temporary_tree(name: str) -> None:
    """List a folder in the temporary folder, with all that another program will write there."""
    _open_temporary_folder().claim_pattern(f"{name}/")


@contextmanager
def use_temporary_folder() -> Iterator[OwnFolder]:
    """Make another temporary folder for a block, and remove it afterwards. Its files are listed by `claim`.

    Raises:
        OSError: It cannot be created.
    """
    import tempfile

    with own_files.use_folder(Path(tempfile.gettempdir()), TEMPORARY_PREFIX) as temporary:
        yield temporary


@cache
def _open_temporary_folder() -> OwnFolder:
    import atexit
    import tempfile

    own_files.remove_abandoned(Path(tempfile.gettempdir()), TEMPORARY_PREFIX)
    temporary = own_files.make_folder(Path(tempfile.gettempdir()), TEMPORARY_PREFIX)
    temporary.claim_pattern(_SPILL_FILES)
    atexit.register(temporary.close)
    return temporary


@contextmanager
def remove_leftovers() -> Iterator[None]:
    """Remove what the block leaves in the temporary folder of this process, which may be as large as the trace.

    If blocks overlap in several threads, the last one to end removes what all of them left.
    """
    with _cleanup_lock:
        if not _cleanup_blocks:
            _paths_before_cleanup.clear()
            _paths_before_cleanup.update(temporary_folder().iterdir())
        _cleanup_blocks.append(None)
    try:
        yield
    finally:
        with _cleanup_lock:
            _cleanup_blocks.pop()
            for leftover in set(temporary_folder().iterdir()) - _paths_before_cleanup if not _cleanup_blocks else ():
                with suppress(OSError):
                    own_files.remove(leftover)


def digest(*values: str | bytes) -> str:
    """Return 32 hex digits that identify `values`; the file name of an entry begins with them."""
    import hashlib

    state = hashlib.blake2b(digest_size=16)
    for value in map(os.fsencode, values):
        state.update(b"%d:" % len(value) + value)
    return state.hexdigest()


def key(path: Path, *extra: str) -> str:
    """Return 32 hex digits that change when the file (or folder of files) at `path` does, or any of `extra`.

    They depend on the real path, the inode, the size, the time of change, and a sample of the content. The sample is
    needed because a copy may keep the times of the file that it replaces.

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


def hash_content(file: Path) -> str:
    """Return a hash of a file's content; of a file above `MAX_HASHED_BYTES`, of its size and a sample of its content.

    Raises:
        OSError: The file cannot be read.
    """
    with file.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        return digest(str(size), *([stream.read()] if size <= MAX_HASHED_BYTES else _read_sample(stream, size)))


def fingerprint(file: Path) -> str:
    """Return 32 hex digits that change when another program changes a file of the cache.

    They depend on the size, the time of change, and a sample of the content: to read the entire file would take as long
    as some reports do. The time of last use is not included.

    Raises:
        OSError: The file cannot be read.
    """
    with file.open("rb") as stream:
        status = os.fstat(stream.fileno())
        return digest(f"{status.st_size} {status.st_mtime_ns}", *_read_sample(stream, status.st_size))


def _read_sample(stream: BinaryIO, size: int) -> list[bytes]:
    """Read evenly spread pages of a file."""
    pages = []
    for page in range(_SAMPLED_PAGES):
        stream.seek(max(0, size - _PAGE_BYTES) * page // (_SAMPLED_PAGES - 1))
        pages.append(stream.read(_PAGE_BYTES))
    return pages


@contextmanager
def write_atomically(target: Path) -> Iterator[Path]:
    """Yield a path to write to. It becomes `target` when the block succeeds, and is removed when it fails.

    The path lies in a folder of its own (`path.parent`) next to `target`. Other files there must be listed first
    (`own_files.claim`). Folders that killed processes left there are removed first. Two processes that write the same
    target do not disturb each other; the later file stays. Entries of the cache are written by
    `cache_entries.make_entry`.

    Raises:
        OSError: The folder of `target` cannot be written to, the disk is full, or `target` is not this program's.
    """
    with make_work_path(target) as path:
        yield path
        own_files.replace(path, target)


@contextmanager
def make_work_path(target: Path) -> Iterator[Path]:
    """Yield a path as `write_atomically` does, but leave the last step to the block: it must move the file itself."""
    own_files.remove_abandoned(target.parent, WORK_PREFIX)
    with own_files.use_folder(target.parent, WORK_PREFIX) as work:
        yield work.claim(target.name)


def touch(entry: Path) -> None:
    """Mark an entry as used now.

    The time of change stays the same: it is part of the entry's identity, and keys of other entries may depend on it.
    """
    with suppress(OSError):
        os.utime(entry, ns=(time.time_ns(), entry.stat().st_mtime_ns))


@contextmanager
def hold_exclusive_lock(folder: Path) -> Iterator[None]:
    """Let only one process at a time run a block on this folder.

    Where locks do not work, or another process does not finish within `_MAX_WAIT_S`, the block runs anyway.
    """
    descriptor = None
    try:
        if sys.platform != "win32":
            with suppress(OSError):
                descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
                deadline_s = time.monotonic() + _MAX_WAIT_S
                while own_files.lock(descriptor) is False and time.monotonic() < deadline_s:
                    time.sleep(0.001)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)
