"""What is said about an entry of the cache in a small JSON file beside it: what it holds, and what it was made of."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from nsys_insight.ingest import cache_folder

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


def about(holds: str, files: tuple[Path, ...]) -> About:
    """Say what an entry holds and what it is made of: traces, or other entries.

    Raises:
        OSError: A file cannot be read.
    """
    made_of: dict[str, str] = {}
    parents = []
    for file in files:
        parent = read(file)
        if parent:
            made_of |= parent.files
            parents.append(file.name)
        else:
            made_of[os.path.abspath(file)] = cache_folder.key(file)  # noqa: PTH100 - links stay as the user knows them
    return About(holds, made_of, tuple(parents))


def beside(entry: Path) -> Path:
    """Where that about an entry is."""
    return entry.with_name(f"{entry.name}{SUFFIX}")


def is_entry(name: str) -> bool:
    """Tell whether a file may be an entry by its name."""
    return bool(_ENTRY.fullmatch(name)) and not name.endswith(SUFFIX)


def read(entry: Path) -> About | None:
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


def write(said: About, file: Path) -> None:
    """Write to a file what is said about an entry, readable by the user alone."""
    file.touch(mode=0o600)
    file.write_text(json.dumps(asdict(said)), encoding="utf-8")
