"""Files that this program can prove to be its own, and their removal: the only place where files are removed.

The proof is a manifest in the folder, the file `.nsys-insight-files`: the process that wrote it, the time, a random
token, and the names of all files that the program makes there. A name is listed before its file exists. So a file that
is not listed belongs to somebody else, and the folder that contains it stays. The manifest of a temporary folder also
has the folder's name and inode: a copy or a renamed folder is not temporary. Other folders with a manifest, the cache
and outputs of several files, can be copied.

To replace, rename or overwrite a file also removes it, so the same rule applies.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from nsys_insight.records import make_record, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator

MARKER = ".nsys-insight-files"
_PROGRAM = "nsys-insight files/1"
# DuckDB and SQLite write these next to a file. DuckDB also makes a folder of the name, with files of its own names.
_SIDE_SUFFIXES = (".wal", "-wal", "-journal", "-shm")
_SPILL_FOLDER, _SPILL_FILES = ".tmp", "duckdb_temp_"
_DAY_S = 24 * 60 * 60

# Temporary folders that stay because they hold files of others, with the name of one of these.
foreign_files: dict[Path, str] = {}


@dataclass(frozen=True)
class _Header:
    """The first line of a manifest. Inode and name identify a temporary folder; for others they are unset.

    Machines that share a folder know its file system by different device numbers.
    """

    program: str
    token: str
    process: int
    start_ns: int
    folder: str = ""
    inode: int = 0


@dataclass
class _Names:
    """The names that a manifest lists, relative to its folder. The name of a folder ends with a slash.

    As a pattern, such a name stands for all that is in the folder.
    """

    exact: set[str] = field(default_factory=set)
    patterns: list[str] = field(default_factory=list)
    folders: set[str] = field(default_factory=set)
    folder_patterns: list[str] = field(default_factory=list)

    def add(self, name: str, *, is_pattern: bool) -> None:
        (self.patterns.append if is_pattern else self.exact.add)(name)
        parts = name.split("/")
        parents = ["/".join(parts[:count]) for count in range(1, len(parts))]
        (self.folder_patterns.extend if is_pattern else self.folders.update)(parents)

    def has_file(self, name: str) -> bool:
        """Return whether a file is listed, or is a side file of one that is."""
        if name in self.exact or any(name.removesuffix(suffix) in self.exact for suffix in _SIDE_SUFFIXES):
            return True
        folder, _, file = name.rpartition("/")
        if folder.removesuffix(_SPILL_FOLDER) in self.exact and file.startswith(_SPILL_FILES):
            return True
        return any(
            name.startswith(pattern) if pattern.endswith("/") else fnmatchcase(name, pattern)
            for pattern in self.patterns
        )

    def has_folder(self, name: str) -> bool:
        """Return whether a folder is listed: it contains what is listed, or is listed itself."""
        if name in self.folders or name.removesuffix(_SPILL_FOLDER) in self.exact or self.has_file(f"{name}/"):
            return True
        return any(fnmatchcase(name, pattern) for pattern in self.folder_patterns)


class OwnFolder:
    """A temporary folder of this process, in use until it is closed: a lock on its manifest shows that to others."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        """Take a folder and its open, locked manifest."""
        self.path = path
        self._stream = stream

    def claim(self, name: str) -> Path:
        """List a file that is about to be made, and return its path. Side files of databases need not be listed."""
        _write_line(self._stream, name)
        return self.path / name

    def claim_pattern(self, pattern: str) -> None:
        """List files of another program by a pattern, or everything in a folder by its name and a slash."""
        _write_line(self._stream, [pattern])

    def close(self) -> None:
        """Remove the folder, unless it holds files that are not listed."""
        if sys.platform == "win32":
            self._stream.close()  # an open file cannot be removed there
        with suppress(OSError):
            if unlisted := remove(self.path):
                foreign_files[self.path] = unlisted[0].name
        self._stream.close()


def make_folder(parent: Path, prefix: str) -> OwnFolder:
    """Make a private temporary folder with a name that cannot be guessed. It is in use until it is closed.

    Raises:
        OSError: It cannot be created.
    """
    path = parent / f"{prefix}{os.getpid()}-{os.urandom(8).hex()}"
    path.mkdir(mode=0o700)
    try:
        stream = (path / MARKER).open("ab", buffering=0)  # other names are appended by `claim`
        lock(stream.fileno())  # before the first line: without it, other processes leave the folder alone
        _write_line(stream, asdict(_make_header(path.name, path.stat().st_ino)))
    except OSError:  # the disk is full
        (path / MARKER).unlink(missing_ok=True)
        path.rmdir()
        raise
    return OwnFolder(path, stream)


@contextmanager
def use_folder(parent: Path, prefix: str) -> Iterator[OwnFolder]:
    """Make a temporary folder for a block, and remove it afterwards.

    Raises:
        OSError: It cannot be created.
    """
    folder = make_folder(parent, prefix)
    try:
        yield folder
    finally:
        folder.close()


def adopt(folder: Path) -> None:
    """Let a folder have a manifest, if it has none. It lists none of the files that are there already.

    Raises:
        OSError: It cannot be written, or a file of its name is not a manifest.
    """
    marker = folder / MARKER
    if not os.path.lexists(marker) or (marker.is_file() and not marker.stat().st_size):  # a process was killed here
        with marker.open("ab", buffering=0) as stream:
            _write_line(stream, asdict(_make_header()))
    if _read_names(folder) is None:
        raise FileExistsError(errno.EEXIST, "it is not a manifest of nsys-insight", str(marker))


def claim(*paths: Path) -> None:
    """List files that are about to be made, in the manifest of the nearest folder that has one.

    Raises:
        OSError: No enclosing folder has a manifest, or it cannot be written.
        FileExistsError: A file is there that no manifest lists.
    """
    for path in paths:
        folder, names = _get_owner(path)
        name = path.relative_to(folder).as_posix()
        if names.has_file(name):
            continue
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, "nsys-insight did not write the file of this name", str(path))
        with (folder / MARKER).open("ab", buffering=0) as stream:
            _write_line(stream, name)


def make_subfolder(path: Path, *, is_for_others: bool = False) -> None:
    """List a new folder in the manifest of the nearest folder above that has one, and make it.

    With `is_for_others`, each file that another program writes there counts as listed, since its name is not known.

    Raises:
        OSError: As `claim`, or the folder exists.
    """
    folder, _ = _get_owner(path)
    name = f"{path.relative_to(folder).as_posix()}/"
    with (folder / MARKER).open("ab", buffering=0) as stream:
        _write_line(stream, [name] if is_for_others else name)
    path.mkdir()


def replace(source: Path, target: Path) -> None:
    """Move a finished file to a target, which the manifest of its folder lists from then on.

    Raises:
        FileExistsError: A file is there that no manifest lists.
        OSError: It cannot be moved.
    """
    if find_owner(target) is None:
        adopt(target.parent)
    claim(target)
    source.replace(target)


def replace_folder(source: Path, target: Path) -> None:
    """Move a finished folder to a target. A folder that is there is removed first, unless it holds files of others.

    The folder brings its own manifest, or one above the target has to list its files.

    Raises:
        FileExistsError: The target holds anything that no manifest lists.
        OSError: It cannot be moved.
    """
    is_empty = target.is_dir() and not any(target.iterdir())
    if not is_empty and (unlisted := remove(target)):
        raise FileExistsError(errno.EEXIST, "nsys-insight did not write it", str(unlisted[0]))
    if not os.path.lexists(source / MARKER):
        claim(*(target / path.relative_to(source) for path in _list_files(source)))
    source.replace(target)


def overwrite(source: Path, target: Path) -> None:
    """Move a finished file over a target that the user has released, or whose content is known to be an output.

    Raises:
        OSError: It cannot be moved.
    """
    source.replace(target)


def is_own(path: Path) -> bool:
    """Return whether this program made a file, or a folder with all that it holds."""
    return os.path.lexists(path) and not list_unlisted(path)


def list_unlisted(path: Path) -> list[Path]:
    """Return what no manifest lists: the file, or files and folders in the folder; empty if all is this program's."""
    if not os.path.lexists(path):
        return []
    owner = find_owner(path)
    if owner is None:
        return [path]
    folder, names = owner
    if path == folder:
        return _list_unlisted(path, folder, names)
    if path.is_dir() and not path.is_symlink():
        is_listed = names.has_folder(path.relative_to(folder).as_posix())
        return _list_unlisted(path, folder, names) if is_listed else [path]
    return [] if names.has_file(path.relative_to(folder).as_posix()) else [path]


def remove(path: Path, *, is_proven: bool = False) -> list[Path]:
    """Remove a file or folder that is this program's own, and do nothing else; return what stays in its way.

    Nothing is removed if a folder holds anything that is not listed. Links are removed, not followed. `is_proven` is
    for a file whose content has been compared with what this program wrote.

    Raises:
        OSError: It cannot be removed.
    """
    unlisted = [] if is_proven else list_unlisted(path)
    if not unlisted and os.path.lexists(path):
        if path.is_dir() and not path.is_symlink():
            _remove_listed(path)
        else:
            path.unlink(missing_ok=True)
    return unlisted


def remove_abandoned(parent: Path, prefix: str) -> None:
    """Remove the temporary folders with this prefix that killed processes left behind.

    A folder with a file that is not listed stays, and is added to `foreign_files`. A lock shows whether a process uses
    a folder, not a process id: containers and machines that share the folder each count their own ids. Where locks do
    not work, a day without change counts as abandoned. The clock may have been set back meanwhile.
    """
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    _remove_if_abandoned(Path(entry.path))


def find_owner(path: Path) -> tuple[Path, _Names] | None:
    """Return the nearest folder with a manifest, from the path up, and the names that it lists; None without one."""
    for folder in (path, *path.parents):
        if os.path.lexists(folder / MARKER):
            names = _read_names(folder)
            return None if names is None else (folder, names)
    return None


def _get_owner(path: Path) -> tuple[Path, _Names]:
    """Return the owner of a path (`find_owner`).

    Raises:
        FileNotFoundError: No enclosing folder has a manifest.
    """
    owner = find_owner(path)
    if owner is None:
        raise FileNotFoundError(errno.ENOENT, "there is no manifest of nsys-insight", str(path.parent))
    return owner


def lock(descriptor: int, *, shared: bool = False) -> bool | None:
    """Lock a file until it is closed. Return False if another process holds it, None where locks do not work."""
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


def _make_header(folder: str = "", inode: int = 0) -> _Header:
    return _Header(_PROGRAM, os.urandom(16).hex(), os.getpid(), time.time_ns(), folder, inode)


def _write_line(stream: BinaryIO, record: object) -> None:
    stream.write(f"{json.dumps(record)}\n".encode())


def _read_names(folder: Path) -> _Names | None:
    """Read a manifest. None if it is not one of this user and this program, or not about this folder."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        status = (folder / MARKER).lstat()
        if not stat.S_ISREG(status.st_mode) or (sys.platform != "win32" and status.st_uid != os.geteuid()):
            return None
        first_line, *lines = (folder / MARKER).read_text(encoding="utf-8").splitlines()
        if not _is_about(make_record(_Header, parse_json(first_line)), folder):
            return None
        names = _Names()
        names.exact.add(MARKER)
        for line in lines:
            with suppress(ValueError):  # a process was killed while it wrote the last line
                value = json.loads(line)
                name = value[0] if isinstance(value, list) else value
                if isinstance(name, str) and not name.startswith("/") and ".." not in name.split("/"):
                    names.add(name, is_pattern=isinstance(value, list))
        return names
    return None


def _is_about(header: _Header, folder: Path) -> bool:
    if header.program != _PROGRAM or not header.folder:
        return header.program == _PROGRAM
    return (header.folder, header.inode) == (folder.name, folder.lstat().st_ino)


def _is_temporary(folder: Path) -> bool:
    """Return whether a folder is a temporary one, by its own manifest."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        with (folder / MARKER).open(encoding="utf-8") as stream:
            header = make_record(_Header, parse_json(stream.readline()))
        return bool(header.folder) and _is_about(header, folder)
    return False


def _list_files(folder: Path) -> Iterator[Path]:
    for entry in _scan(folder):
        if entry.is_dir(follow_symlinks=False):
            yield from _list_files(Path(entry.path))
        else:
            yield Path(entry.path)


def _list_unlisted(path: Path, folder: Path, names: _Names) -> list[Path]:
    unlisted = []
    for entry in _scan(path):
        entry_path = Path(entry.path)
        name = entry_path.relative_to(folder).as_posix()
        if not entry.is_dir(follow_symlinks=False):
            unlisted += [] if names.has_file(name) else [entry_path]
        elif _is_temporary(entry_path):
            unlisted += list_unlisted(entry_path)
        elif not names.has_folder(name) or (
            os.path.lexists(entry_path / MARKER) and not names.has_file(f"{name}/{MARKER}")
        ):
            unlisted.append(entry_path)
        else:
            unlisted += _list_unlisted(entry_path, folder, names)
    return unlisted


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _remove_listed(path: Path) -> None:
    """Remove a folder file by file, its manifest last. A file that appears meanwhile stays, and so does the folder."""
    owner = find_owner(path)
    if owner is None:
        return
    folder, names = owner
    for entry in _scan(path):
        entry_path = Path(entry.path)
        name = entry_path.relative_to(folder).as_posix()
        if entry.is_dir(follow_symlinks=False):
            if names.has_folder(name) or _is_temporary(entry_path):
                _remove_listed(entry_path)
        elif entry_path != folder / MARKER and names.has_file(name):
            entry_path.unlink(missing_ok=True)
    if path == folder and [entry.name for entry in _scan(path)] == [MARKER]:
        (path / MARKER).unlink(missing_ok=True)
    path.rmdir()


def _remove_if_abandoned(folder: Path) -> None:
    # Outputs and caches, whose manifests name no folder, may lie there under such a name, too.
    if _read_names(folder) is None or not _is_temporary(folder):
        return
    with (folder / MARKER).open("rb+") as stream:
        locked = lock(stream.fileno())
        if locked is False or (locked is None and abs(time.time() - folder.stat().st_mtime) < _DAY_S):
            return
        if unlisted := remove(folder):
            foreign_files[folder] = unlisted[0].name
