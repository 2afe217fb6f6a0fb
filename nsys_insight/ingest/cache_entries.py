"""The entries of the cache folder: how one is written, who uses it, and which are removed when space runs out.

An entry is a file that `make_entry` wrote for a trace. A small JSON file next to it is its manifest: what it holds and
what it was made from. Only entries that the folder's own manifest lists are replaced or removed (`own_files`), because
the user may have pointed the variable to a folder with other files in it. Entries of versions without that manifest are
read, and stay.
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

from nsys_insight import cache_folder, own_files
from nsys_insight.errors import file_changed_error
from nsys_insight.records import make_record, parse_json
from nsys_insight.text.units import parse_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


SIZE_VARIABLE = "NSYS_INSIGHT_CACHE_SIZE"

# Earlier versions wrote no manifests. Their entries have these suffixes.
_OLD_SUFFIXES = (".sqlite", ".duckdb")
_MARKER = re.compile(r"[0-9a-f]{32}\.last")
_MAX_BYTES = 20 * 2**30
_MAX_DISK_SHARE = 0.1
_DAY_S = 24 * 60 * 60
_MAX_AGE_S = 30 * _DAY_S
# An entry appears a moment after its manifest.
_GRACE_S = 60
# Where locks do not work, an entry that was used in the last hour counts as in use.
_MAX_USE_S = 60 * 60

# Shared locks by entry: descriptors that stay open, and so locked, until they are released or the process ends.
_lock_descriptors: dict[Path, int] = {}
# The number of sessions of this process that use an entry.
_use_counts: Counter[Path] = Counter()

MANIFEST_SUFFIX = ".json"
# Keys of manifests that differ from the fields: files of earlier versions have them.
_JSON_KEYS = {"fingerprint": "seal"}

# File names that begin with a digest (`cache_folder.digest`).
_ENTRY = re.compile(r"[0-9a-f]{32}[-.].+")


@dataclass(frozen=True)
class Manifest:
    """What an entry holds, in a few words, and the files it was made from: their paths, with their keys at that time.

    `parents` are the names of other entries that it was made from; `files` then lists the files of those. `fingerprint`
    detects changes of the entry itself (`cache_folder.fingerprint`).
    """

    holds: str
    files: dict[str, str]
    parents: tuple[str, ...] = ()
    fingerprint: str = ""

    def is_made_from(self, trace: Path) -> bool:
        """Return whether an entry was made from a trace or one in a folder; a report and its export are one trace."""
        real_path = Path(os.path.realpath(trace))
        for path in map(Path, map(os.path.realpath, self.files)):
            if path.is_relative_to(real_path) or (path.parent == real_path.parent and path.stem == real_path.stem):
                return True
        return False

    @property
    def state(self) -> str:
        """Return the state of the files: unchanged, changed, unreadable or gone."""
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
    """An entry: `size` in bytes, `last_used_s` in s since 1970 (0 if unknown), and its manifest."""

    path: Path
    size: int
    last_used_s: float
    manifest: Manifest | None


def read_size_limit(folder: Path) -> int:
    """Return how many bytes the entries in a folder may take: the user's limit, else 20 GiB or a tenth of the disk.

    Raises:
        UsageError: The user's limit is not a size.
    """
    text = os.environ.get(SIZE_VARIABLE)
    if text:
        return parse_bytes(text, flag=f"${SIZE_VARIABLE}")
    with suppress(OSError):
        return min(_MAX_BYTES, int(shutil.disk_usage(folder).total * _MAX_DISK_SHARE))
    return _MAX_BYTES


@contextmanager
def make_entry(target: Path, holds: str, *files: Path) -> Iterator[Path]:
    """Yield a path to write to. It becomes the entry `target`; see `cache_folder.write_atomically`.

    The name of `target` begins with a `cache_folder.key` or `digest`. `holds` describes the content in a few words.
    `files` are the traces or other entries that it is made from; it is removed along with these entries. The entry is
    readable by the user only, and counts as in use until the process ends. Entries that were not used for a month are
    removed, then the least recently used ones until the rest fits the size limit. This entry and entries in use always
    stay. If another process has written the entry meanwhile, that one stays, because it may be in use there.

    Raises:
        OSError: The folder cannot be written to, the disk is full, or a file cannot be read.
        TraceError: A file was changed meanwhile.
        UsageError: The size limit is not a size.
    """
    limit_bytes, manifest, identity_before = (
        read_size_limit(target.parent),
        make_manifest(holds, files),
        _read_identity(target),
    )
    if os.path.lexists(target):
        own_files.claim(target)
    with cache_folder.make_work_path(target) as path:
        yield path
        if make_manifest(holds, files) != manifest:
            raise file_changed_error(" or ".join(map(str, files)))
        path.chmod(0o600)
        _make_room(target, path.stat().st_size, limit_bytes)
        manifest_file = manifest_path(path)
        own_files.claim(manifest_file)
        write_manifest(replace(manifest, fingerprint=cache_folder.fingerprint(path)), manifest_file)
        # Two processes may write the same entry. The lock stops one from replacing a file that the other has opened.
        with cache_folder.hold_exclusive_lock(target.parent):
            if _read_identity(target) == identity_before or not (_lock_entry(target, target) and _is_intact(target)):
                _lock_entry(target, path)
                own_files.replace(manifest_file, manifest_path(target))
                own_files.replace(path, target)


def use(entry: Path) -> bool:
    """Mark an entry as used now and lock it against removal until the process ends. Return False if there is no entry.

    An entry that changed since it was written is removed, and counts as missing. One of an earlier version stays.
    """
    if not entry.is_file() or not _lock_entry(entry, entry):
        return False
    if not _is_intact(entry):
        with cache_folder.hold_exclusive_lock(entry.parent):  # it may be replaced right now
            if not _is_intact(entry):
                with suppress(OSError):
                    discard(entry)
                return False
    cache_folder.touch(entry)
    _use_counts[entry] += 1
    return True


def release(entry: Path) -> None:
    """Undo one `use` of an entry."""
    _use_counts[entry] -= 1
    if _use_counts[entry] <= 0:
        del _use_counts[entry]
        _unlock_entry(entry)


@contextmanager
def change_entry(target: Path, holds: str, *files: Path) -> Iterator[Path | None]:
    """Yield the path of an entry to change in place, or to write. Yield None while another session uses the entry.

    An entry of an earlier version is not changed either.

    If a change is interrupted, the fingerprint no longer matches and `use` removes the entry.

    Raises:
        As `make_entry`.
    """
    if target.exists() and not own_files.is_own(target):
        yield None
        return
    if not target.is_file() or not _is_intact(target):
        discard(target)
        with make_entry(target, holds, *files) as path:
            yield path
        return
    if not _use_counts[target]:
        _unlock_entry(target)
    with ExitStack() as stack:
        stream = stack.enter_context(target.open("rb"))
        if _use_counts[target] or (sys.platform != "win32" and own_files.lock(stream.fileno()) is False):
            yield None
            return
        limit_bytes, manifest = read_size_limit(target.parent), make_manifest(holds, files)
        yield target
        _make_room(target, target.stat().st_size, limit_bytes)
        write_manifest(replace(manifest, fingerprint=cache_folder.fingerprint(target)), manifest_path(target))


def list_entries(folder: Path) -> list[Entry]:
    """Return the entries in a folder, the most recently used first."""
    found_entries = []
    for path in _list_files(folder):
        manifest = read_manifest(path)
        if manifest or (is_entry_name(path.name) and path.suffix in _OLD_SUFFIXES):
            with suppress(OSError):  # another process may remove it right now
                status = path.lstat()
                if stat.S_ISREG(status.st_mode):
                    found_entries.append(Entry(path, status.st_size, _read_last_used_s(status), manifest))
    return sorted(found_entries, key=lambda entry: (-entry.last_used_s, entry.path.name))


def remove(selected: Iterable[Entry], folder: Path) -> tuple[list[Entry], list[Entry]]:
    """Remove entries and the entries made from them; return the removed ones, and those that are in use and stay."""
    all_entries = list_entries(folder)
    removed: dict[Path, Entry] = {}
    in_use: dict[Path, Entry] = {}
    pending = list(selected)
    while pending:
        entry = pending.pop()
        if entry.path in removed or entry.path in in_use:
            continue
        if _unlink_unused(entry):
            removed[entry.path] = entry
            pending += [other for other in all_entries if other.manifest and entry.path.name in other.manifest.parents]
        else:
            in_use[entry.path] = entry
    return list(removed.values()), list(in_use.values())


def discard(entry: Path) -> None:
    """Remove a damaged entry, even if it is in use, so that it is written again when it is next needed.

    An entry that the folder's manifest does not list stays.
    """
    _unlock_entry(entry)
    for file in (entry, manifest_path(entry), entry.with_name(f"{entry.name}.wal")):
        own_files.remove(file)


def remove_old_markers(folder: Path, unused_s: float) -> None:
    """Remove the marker files (`*.last`) that were not used for this long."""
    for path in _list_files(folder):
        if _MARKER.fullmatch(path.name):
            with suppress(OSError):
                if time.time() - _read_last_used_s(path.lstat()) >= unused_s:
                    own_files.remove(path)


def _make_room(target: Path, size: int, limit_bytes: int) -> None:
    folder = target.parent
    remove_old_markers(folder, _MAX_AGE_S)
    _remove_orphaned_manifests(folder)
    other_entries = [entry for entry in list_entries(folder) if entry.path != target]
    oldest = time.time() - _MAX_AGE_S
    total = size + sum(entry.size for entry in other_entries)
    removed_paths: set[Path] = set()
    for old_entry in reversed(other_entries):
        if old_entry.path not in removed_paths and (total > limit_bytes or 0 < old_entry.last_used_s < oldest):
            removed_entries, _ = remove([old_entry], folder)
            total -= sum(entry.size for entry in removed_entries)
            removed_paths |= {entry.path for entry in removed_entries}


def _remove_orphaned_manifests(folder: Path) -> None:
    """Remove manifests without an entry. A process that is killed between the two writes leaves one behind."""
    for path in _list_files(folder):
        entry = path.with_name(path.name.removesuffix(MANIFEST_SUFFIX))
        if path != entry and not entry.exists() and read_manifest(entry):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > _GRACE_S:
                    own_files.remove(path)


def _list_files(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _is_intact(entry: Path) -> bool:
    """Return whether an entry is as it was written; see `cache_folder.fingerprint` for how much of it is checked."""
    manifest = read_manifest(entry)
    with suppress(OSError):
        return manifest is not None and manifest.fingerprint == cache_folder.fingerprint(entry)
    return False


def _read_last_used_s(status: os.stat_result) -> float:
    """Return the later of two times, since not every disk records both; ignore times to come, from a wrong clock."""
    latest = time.time() + _DAY_S
    return max((time_s for time_s in (status.st_atime, status.st_mtime) if time_s <= latest), default=0)


def _read_identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _lock_entry(entry: Path, file: Path) -> bool:
    """Lock `file`, which is or becomes `entry`, against removal. Return False if it is being removed."""
    if sys.platform == "win32":
        return True  # Windows does not remove a file while it is open
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return file.exists()
    locked, status = own_files.lock(descriptor, shared=True), os.fstat(descriptor)
    if locked is False or _read_identity(file) != (status.st_dev, status.st_ino):
        os.close(descriptor)
        return False
    _unlock_entry(entry)
    _lock_descriptors[entry] = descriptor
    return True


def _unlock_entry(entry: Path) -> None:
    descriptor = _lock_descriptors.pop(entry, None)
    if descriptor is not None:
        os.close(descriptor)


def _unlink_unused(entry: Entry) -> bool:
    """Remove an entry that no process uses. Return whether it was removed."""
    if entry.path.exists() and not own_files.is_own(entry.path):
        return False
    try:
        with ExitStack() as stack:
            stack.enter_context(cache_folder.hold_exclusive_lock(entry.path.parent))
            if sys.platform != "win32":
                locked = own_files.lock(stack.enter_context(entry.path.open("rb+")).fileno())
                if locked is False or (locked is None and time.time() - entry.last_used_s < _MAX_USE_S):
                    return False
            own_files.remove(entry.path)
            own_files.remove(manifest_path(entry.path))
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return True


def make_manifest(holds: str, files: tuple[Path, ...]) -> Manifest:
    """Return the manifest of an entry that is made from files: traces, or other entries.

    Raises:
        OSError: A file cannot be read.
    """
    keys_by_path: dict[str, str] = {}
    parents = []
    for file in files:
        parent = read_manifest(file)
        if parent:
            keys_by_path |= parent.files
            parents.append(file.name)
        else:
            keys_by_path[os.path.abspath(file)] = cache_folder.key(file)  # noqa: PTH100 - links stay as the user knows them
    return Manifest(holds, keys_by_path, tuple(parents))


def manifest_path(entry: Path) -> Path:
    """Return the path of the JSON file that describes an entry."""
    return entry.with_name(f"{entry.name}{MANIFEST_SUFFIX}")


def is_entry_name(name: str) -> bool:
    """Return whether a file can be an entry, judged by its name."""
    return bool(_ENTRY.fullmatch(name)) and not name.endswith(MANIFEST_SUFFIX)


def read_manifest(entry: Path) -> Manifest | None:
    """Read the manifest of an entry. Return None if it is missing or malformed."""
    if not is_entry_name(entry.name):
        return None
    try:
        return make_record(Manifest, parse_json(manifest_path(entry).read_bytes()), names=_JSON_KEYS)
    except (OSError, ValueError):
        return None


def write_manifest(manifest: Manifest, file: Path) -> None:
    """Write a manifest to a file that only the user can read."""
    file.touch(mode=0o600)
    record = {_JSON_KEYS.get(name, name): value for name, value in asdict(manifest).items()}
    file.write_text(json.dumps(record), encoding="utf-8")
