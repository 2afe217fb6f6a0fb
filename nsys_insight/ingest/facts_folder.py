"""A folder with what was worked out about one trace: its raw tables and its facts, as Parquet files, to be read back.

`raw/` has the tables of the contract that have rows, as ``convert`` writes them, so the folder is a trace like any
other; `facts/` has the facts that are of this trace by itself, and `about.json` of which file and by what they were
found. What facts are may change with the next version: then those in the folder are left where they are, and found anew
in the raw tables.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from nsys_insight import outputs
from nsys_insight.ingest import cache_folder
from nsys_insight.ingest.source import Stored
from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# Folders are called as the trace without its suffix, and this in its place: so they have the trace's own name.
SUFFIX = ".facts"
_ABOUT = "about.json"
_SCHEMA = "nsys-insight-facts/1"
_FLEET, _FLEET_SCHEMA = "fleet.json", "nsys-insight-fleet/1"
# Beside such folders, what is of all of them together.
RUN, _RUN_SCHEMA = "run", "nsys-insight-run/1"


@dataclass(frozen=True)
class About:
    """What a folder was made of.

    Attributes:
        file: The trace's name, and `identity` what tells that it is unchanged (`cache_folder.key`).
        definitions: What says what facts are (`facts.file.definitions`).
        version: That of nsys-insight.
        columns: The columns of each raw table.
        left_out: What is said of rows that cannot be true, and were left out.
    """

    file: str
    identity: str
    definitions: str
    version: str
    columns: dict[str, list[str]] = field(default_factory=dict)
    left_out: str = ""

    def write(self, folder: Path) -> None:
        """Write it down in the folder."""
        text = json.dumps({"schema": _SCHEMA, **asdict(self)}, indent=1)
        (folder / _ABOUT).write_text(text + "\n", encoding="utf-8")


def about(folder: Path) -> About | None:
    """Read what a folder was made of; None where it does not say, or not so that it could be believed."""
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
        said: dict[str, Any] = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
        if said.pop("schema") == _SCHEMA:
            found = About(**said)
            texts = (found.file, found.identity, found.definitions, found.version, found.left_out)
            columns = [name for names in found.columns.values() for name in names]
            if all(isinstance(text, str) for text in (*texts, *columns)):
                return found
    return None


def files(folder: Path) -> list[Path]:
    """The files of facts in a folder."""
    return sorted((folder.absolute() / "facts").glob("*.parquet")) if (folder / _ABOUT).is_file() else []


def stored(folder: Path, said: About) -> Stored:
    """Say where the facts are, for a session that reads the folder."""
    return Stored(said.definitions, {file.stem: f"read_parquet({literal(str(file))})" for file in files(folder)})


def size(folder: Path) -> int:
    """How many bytes of files it has."""
    return sum(file.stat().st_size for part in ("raw", "facts") for file in (folder / part).glob("*.parquet"))


def write_about_run(folder: Path, folders: Sequence[Path], definitions: str) -> None:
    """Write down, beside the facts about all traces together, of which folders they are."""
    text = json.dumps({"schema": _RUN_SCHEMA, "identity": _together(folders), "definitions": definitions}, indent=1)
    (folder / _ABOUT).write_text(text + "\n", encoding="utf-8")


def stored_of_run(folders: Sequence[Path]) -> Stored | None:
    """Say where the facts about these folders together are, for a session that reads all of them; None if nowhere."""
    found = files_of_run(folders)
    with suppress(OSError, ValueError, TypeError, KeyError, IndexError):
        said = json.loads((folders[0].parent / RUN / _ABOUT).read_text(encoding="utf-8"))
        if said["schema"] == _RUN_SCHEMA and said["identity"] == _together(folders):
            return Stored(
                str(said["definitions"]), {file.stem: f"read_parquet({literal(str(file))})" for file in found}
            )
    return None


def files_of_run(folders: Sequence[Path]) -> list[Path]:
    """The files of facts about all traces of a fleet together, where these are folders of one."""
    beside = {folder.absolute().parent / RUN for folder in folders if folder.suffix == SUFFIX}
    return sorted(beside.pop().glob("*.parquet")) if len(beside) == 1 else []


def _together(folders: Sequence[Path]) -> str:
    """What tells that folders are the same ones, in the same order, and were made of the same files."""
    said = (part for folder in folders for part in (folder.name, (folder / _ABOUT).read_bytes()))
    return cache_folder.digest(*said)


def remember_failed(fleet: Path, failed: dict[str, str | None]) -> None:
    """Write down, beside the folders of a fleet, which of its files could not be read, and why."""
    outputs.save(fleet / _FLEET, json.dumps({"schema": _FLEET_SCHEMA, "failed": failed}, indent=1) + "\n")


def failed_of(fleet: Path) -> dict[str, str] | None:
    """The files of a fleet that could not be read, with why; None where a folder is no fleet's."""
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
        said = json.loads((fleet / _FLEET).read_text(encoding="utf-8"))
        if said["schema"] == _FLEET_SCHEMA:
            return {str(file): str(why) for file, why in said["failed"].items()}
    return None
