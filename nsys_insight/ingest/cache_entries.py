"""The entries of the cache folder: how one is made, who uses it, and which go when room is short.

An entry is a file that `making` put there for a trace; a small JSON file next to it says what it holds and what it was
made of (`About`). Other files in the folder
are left alone: the user may have pointed the variable to one in which somebody keeps other things.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import sys
import time
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight.errors import file_changed
from nsys_insight.ingest import cache_folder
from nsys_insight.text.units import parse_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


SIZE_VARIABLE = "NSYS_INSIGHT_CACHE_SIZE"

# Earlier versions said nothing about the entries that they made, which were of these two kinds.
_OLD_KINDS = (".sqlite", ".duckdb")
_MEMORY = re.compile(r"[0-9a-f]{32}\.last")
_MOST_BYTES = 20 * 2**30
_MOST_OF_DISK = 0.1
_DAY_S = 24 * 60 * 60
_MOST_AGE_S = 30 * _DAY_S
# An entry comes a moment after what is said about it.
_GRACE_S = 60
# Where locks do not work, what was used in the last hour counts as in use.
_UNLOCKED_S = 60 * 60

# Shared locks by entry: files that stay open, and so locked, until they are released or the process ends.
_held: dict[Path, int] = {}
# How many sessions of this process use an entry.
_users: Counter[Path] = Counter()

SUFFIX = ".json"

# What `cache_folder.digest` named.
_ENTRY = re.compile(r"[0-9a-f]{32}[-.].+")


@dataclass(frozen=True)
class About:
    """What an entry holds in a few words, and the files it was made of: their paths, with their keys at that time.

    `parents` are names of entries that it was made of; `files` are then what those were made of. `seal` is the entry's
    own (`cache_folder.seal`).
    """

    holds: str
    files: dict[str, str]
    parents: tuple[str, ...] = ()
    seal: str = ""

    def is_of(self, trace: Path) -> bool:
        """Tell whether an entry is of a trace, or of one in a folder; a report and its export count as one trace."""
        asked = Path(os.path.realpath(trace))
        for path in map(Path, map(os.path.realpath, self.files)):
            if path.is_relative_to(asked) or (path.parent == asked.parent and path.stem == asked.stem):
                return True
        return False

    @property
    def state(self) -> str:
        """Whether the files are still what they were: unchanged, changed, or gone."""
        states = set()
        for path, key in self.files.items():
            try:
                states.add("unchanged" if cache_folder.key(Path(path)) == key else "changed")
            except FileNotFoundError:
                states.add("gone")
            except OSError:
                states.add("unreadable")
        return next((state for state in ("gone", "unreadable", "changed") if state in states), "unchanged")


@dataclass(frozen=True)
class Entry:
    """An entry: `size` in bytes, when it was last `used` in s since 1970, 0 if unknown, and what is said of it."""

    path: Path
    size: int
    used: float
    about: About | None


def most_bytes(folder: Path) -> int:
    """Return how many bytes the entries in a folder may take: as the user says, else 20 GiB or a tenth of its disk.

    Raises:
        UsageError: What the user says is no size.
    """
    said = os.environ.get(SIZE_VARIABLE)
    if said:
        return parse_bytes(said, flag=f"${SIZE_VARIABLE}")
    with suppress(OSError):
        return min(_MOST_BYTES, int(shutil.disk_usage(folder).total * _MOST_OF_DISK))
    return _MOST_BYTES


@contextmanager
def making(target: Path, holds: str, *files: Path) -> Iterator[Path]:
    """Yield a path to write to, which becomes the entry `target`; see `cache_folder.building`.

    The name of `target` begins with a `cache_folder.key` or `digest`. `holds` says in a few words what is in it, and
    `files` what it is made of: traces, or other entries, with which it goes. It is private to the user, and in use
    until the process ends. Entries that were not used for a month go, and others, those used last go last, until all
    are within the size that is allowed: but never this one, nor one in use. If another process has made the entry
    meanwhile, that one stays, for it may be in use there.

    Raises:
        OSError: The folder cannot be written to, the disk is full, or a file cannot be read.
        TraceError: A file was changed meanwhile.
        UsageError: The size that is allowed is none.
    """
    most, about, before = most_bytes(target.parent), describe(holds, files), _identity(target)
    with cache_folder.working(target) as path:
        yield path
        if describe(holds, files) != about:
            raise file_changed(" or ".join(map(str, files)))
        path.chmod(0o600)
        _make_room(target, path.stat().st_size, most)
        said = beside(path)
        write_about(replace(about, seal=cache_folder.seal(path)), said)
        # Two that made the same would replace each other's, and one of them would use a file that is there no more.
        with cache_folder.alone(target.parent):
            if _identity(target) == before or not (_hold(target, target) and _is_sound(target)):
                _hold(target, path)
                said.replace(beside(target))
                path.replace(target)


def use(entry: Path) -> bool:
    """Mark an entry as used now, and keep it from being removed until the process ends; False if it is not there.

    One that is not as it was made is none, and is removed.
    """
    if not entry.is_file() or not _hold(entry, entry):
        return False
    if not _is_sound(entry):
        with cache_folder.alone(entry.parent):  # it may be replaced right now
            if not _is_sound(entry):
                discard(entry)
                return False
    cache_folder.touch(entry)
    _users[entry] += 1
    return True


def release(entry: Path) -> None:
    """Take back one `use` of an entry."""
    _users[entry] -= 1
    if _users[entry] <= 0:
        del _users[entry]
        _let_go(entry)


@contextmanager
def changing(target: Path, holds: str, *files: Path) -> Iterator[Path | None]:
    """Yield the path of an entry to be changed in place, or one to be made; None while anybody uses the entry.

    An entry of which a change was begun and not finished is not as it was made, and is removed by `use`.

    Raises:
        As `making`.
    """
    if not target.is_file() or not _is_sound(target):
        discard(target)
        with making(target, holds, *files) as path:
            yield path
        return
    if not _users[target]:
        _let_go(target)
    with ExitStack() as held:
        stream = held.enter_context(target.open("rb"))
        if _users[target] or (sys.platform != "win32" and cache_folder.lock(stream.fileno()) is False):
            yield None
            return
        most, about = most_bytes(target.parent), describe(holds, files)
        yield target
        _make_room(target, target.stat().st_size, most)
        write_about(replace(about, seal=cache_folder.seal(target)), beside(target))


def entries(folder: Path) -> list[Entry]:
    """Return the entries in a folder, those used last first."""
    found = []
    for path in _files(folder):
        about = read_about(path)
        if about or (is_entry(path.name) and path.suffix in _OLD_KINDS):
            with suppress(OSError):  # another process may remove it right now
                status = path.lstat()
                if stat.S_ISREG(status.st_mode):
                    found.append(Entry(path, status.st_size, _last_used(status), about))
    return sorted(found, key=lambda entry: (-entry.used, entry.path.name))


def remove(chosen: Iterable[Entry], folder: Path) -> tuple[list[Entry], list[Entry]]:
    """Remove entries, and with them those that were made of them; return what is gone, and what is in use and stays."""
    every = entries(folder)
    gone: dict[Path, Entry] = {}
    kept: dict[Path, Entry] = {}
    left = list(chosen)
    while left:
        entry = left.pop()
        if entry.path in gone or entry.path in kept:
            continue
        if _unlinked(entry):
            gone[entry.path] = entry
            left += [other for other in every if other.about and entry.path.name in other.about.parents]
        else:
            kept[entry.path] = entry
    return list(gone.values()), list(kept.values())


def discard(entry: Path) -> None:
    """Remove a damaged entry, also if it is in use, so that it is made again when next asked for."""
    _let_go(entry)
    for file in (entry, beside(entry), entry.with_name(f"{entry.name}.wal")):
        file.unlink(missing_ok=True)


def forget(folder: Path, unused_s: float) -> None:
    """Remove what is remembered of working folders, where that was not used for so long."""
    for path in _files(folder):
        if _MEMORY.fullmatch(path.name):
            with suppress(OSError):
                if time.time() - _last_used(path.lstat()) >= unused_s:
                    path.unlink()


def _make_room(target: Path, size: int, most: int) -> None:
    folder = target.parent
    forget(folder, _MOST_AGE_S)
    _forget_the_lost(folder)
    others = [entry for entry in entries(folder) if entry.path != target]
    oldest = time.time() - _MOST_AGE_S
    total = size + sum(entry.size for entry in others)
    removed: set[Path] = set()
    for entry in reversed(others):
        if entry.path not in removed and (total > most or 0 < entry.used < oldest):
            gone, _ = remove([entry], folder)
            total -= sum(one.size for one in gone)
            removed |= {one.path for one in gone}


def _forget_the_lost(folder: Path) -> None:
    """Remove what is said about entries that are not there, as a process leaves it that was killed in between."""
    for path in _files(folder):
        entry = path.with_name(path.name.removesuffix(SUFFIX))
        if path != entry and not entry.exists() and read_about(entry):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > _GRACE_S:
                    path.unlink()


def _files(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _is_sound(entry: Path) -> bool:
    """Tell whether an entry is as it was made: see `cache_folder.seal` for how much of it is looked at."""
    about = read_about(entry)
    with suppress(OSError):
        return about is not None and about.seal == cache_folder.seal(entry)
    return False


def _last_used(status: os.stat_result) -> float:
    """Both times are looked at, for not every disk keeps both; one to come is of a clock that was wrong."""
    latest = time.time() + _DAY_S
    return max((when for when in (status.st_atime, status.st_mtime) if when <= latest), default=0)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _hold(entry: Path, file: Path) -> bool:
    """Lock `file`, which is or becomes `entry`, against removal; False if it is being removed."""
    if sys.platform == "win32":
        return True  # a file is not removed there while somebody has it open
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return file.exists()
    locked, status = cache_folder.lock(descriptor, shared=True), os.fstat(descriptor)
    if locked is False or _identity(file) != (status.st_dev, status.st_ino):
        os.close(descriptor)
        return False
    _let_go(entry)
    _held[entry] = descriptor
    return True


def _let_go(entry: Path) -> None:
    descriptor = _held.pop(entry, None)
    if descriptor is not None:
        os.close(descriptor)


def _unlinked(entry: Entry) -> bool:
    """Remove an entry that no process uses; return whether it was removed."""
    try:
        with ExitStack() as held:
            held.enter_context(cache_folder.alone(entry.path.parent))
            if sys.platform != "win32":
                locked = cache_folder.lock(held.enter_context(entry.path.open("rb+")).fileno())
                if locked is False or (locked is None and time.time() - entry.used < _UNLOCKED_S):
                    return False
            entry.path.unlink()
            beside(entry.path).unlink(missing_ok=True)
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return True


def describe(holds: str, files: tuple[Path, ...]) -> About:
    """Say what an entry holds and what it is made of: traces, or other entries.

    Raises:
        OSError: A file cannot be read.
    """
    made_of: dict[str, str] = {}
    parents = []
    for file in files:
        parent = read_about(file)
        if parent:
            made_of |= parent.files
            parents.append(file.name)
        else:
            made_of[os.path.abspath(file)] = cache_folder.key(file)  # noqa: PTH100 - links stay as the user knows them
    return About(holds, made_of, tuple(parents))


def beside(entry: Path) -> Path:
    """Return where the JSON file about an entry is."""
    return entry.with_name(f"{entry.name}{SUFFIX}")


def is_entry(name: str) -> bool:
    """Tell whether a file may be an entry by its name."""
    return bool(_ENTRY.fullmatch(name)) and not name.endswith(SUFFIX)


def read_about(entry: Path) -> About | None:
    """Read what is said about an entry; None if that is nothing, or makes no sense."""
    if not is_entry(entry.name):
        return None
    try:
        match json.loads(beside(entry).read_bytes()):
            case {"holds": str(holds), "files": dict(files), "parents": list(parents), "seal": str(seal)}:
                of = {str(path): str(key) for path, key in files.items()}
                return About(holds, of, tuple(map(str, parents)), seal)
    except (OSError, ValueError, RecursionError):
        pass
    return None


def write_about(said: About, file: Path) -> None:
    """Write to a file what is said about an entry, readable by the user alone."""
    file.touch(mode=0o600)
    file.write_text(json.dumps(asdict(said)), encoding="utf-8")
