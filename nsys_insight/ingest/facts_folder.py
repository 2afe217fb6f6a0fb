"""A folder with the results for one trace: its raw tables and its facts, as Parquet files that can be read back.

`raw/` has the non-empty tables of the expected schema, as ``convert`` writes them. So the folder is a trace like any
other. `facts/` has the facts about this trace alone. `about.json` is the manifest: the file they were made from, and
the version of their definitions. If the next version defines facts differently, those in the folder are ignored and
derived again from the raw tables.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsys_insight import cache_folder, outputs
from nsys_insight.errors import TraceError
from nsys_insight.ingest.files import list_files
from nsys_insight.ingest.source import StoredFacts
from nsys_insight.records import check, make_record, parse_json
from nsys_insight.sql.quoting import read_parquet

if TYPE_CHECKING:
    from collections.abc import Sequence

# The folder name is the trace's, with its suffix replaced by this one. So folder and trace have the same label.
SUFFIX = ".facts"
MANIFEST = "about.json"
_SCHEMA = "nsys-insight-facts/1"
FLEET, _FLEET_SCHEMA = "fleet.json", "nsys-insight-fleet/1"
# Next to such folders: the facts about all traces of a run.
RUN_FOLDER, _RUN_SCHEMA = "run", "nsys-insight-run/1"


@dataclass(frozen=True)
class Manifest:
    """What a folder was made from.

    Attributes:
        file: The name of the trace.
        identity: The key of the trace, which changes with its content (`cache_folder.key`).
        definitions: The digest of the definitions of facts (`facts.store.digest_definitions`).
        version: The version of nsys-insight.
        columns: The columns of each raw table.
        left_out: The sentence about invalid rows that were left out.
        files: The tables and facts in it, with their hashes (`hash_files`); empty for folders of earlier versions.
        digest: The digest of all other entries (`compute_digest`); empty for folders of earlier versions.
    """

    file: str
    identity: str
    definitions: str
    version: str
    columns: dict[str, list[str]] = field(default_factory=dict)
    left_out: str = ""
    files: dict[str, str] = field(default_factory=dict)
    digest: str = ""

    def compute_digest(self) -> str:
        """Return a digest that shows that no entry was edited: a lost column would make sums different."""
        return cache_folder.digest(json.dumps({**asdict(self), "digest": ""}))

    def write(self, folder: Path) -> None:
        """Write the manifest to the folder."""
        text = json.dumps({"schema": _SCHEMA, **asdict(self), "digest": self.compute_digest()}, indent=1)
        (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


@dataclass(frozen=True)
class _RunManifest:
    schema: str
    identity: str
    definitions: str
    files: dict[str, str]


@dataclass(frozen=True)
class _FleetManifest:
    schema: str
    failed: dict[str, str | None]


def hash_files(folder: Path) -> dict[str, str]:
    """Return the hash of each Parquet file in a folder and its subfolders, by its path in the folder."""
    files = (path for path in folder.rglob("*.parquet") if path.is_file())
    return {path.relative_to(folder).as_posix(): cache_folder.hash_content(path) for path in files}


def check_files(folder: Path, manifest: Manifest | None) -> None:
    """Refuse a folder whose files are not as they were written.

    Raises:
        TraceError: A file was lost, added or edited.
    """
    if manifest is None and folder.suffix == SUFFIX:
        problem = f"{MANIFEST} is missing, was edited, or is of another version"
    elif manifest is not None and manifest.files and (file := _find_changed(folder, manifest.files)):
        problem = f"{file} was lost, added or edited after it was written"
    else:
        return
    raise damaged_folder_error(folder, problem)


def damaged_folder_error(folder: object, problem: str) -> TraceError:
    """Return the error for a folder that is not as it was written."""
    return TraceError(f"{folder} is damaged: {problem}", "write it again: nsys-insight fleet TRACES -o FOLDER")


def _find_changed(folder: Path, files: dict[str, str]) -> str:
    """Return the first file that is not as it was written; "" if all are."""
    changed_files = sorted(dict(files.items() ^ hash_files(folder).items()))
    return changed_files[0] if changed_files else ""


def read_manifest(folder: Path) -> Manifest | None:
    """Read the manifest of a folder; None where it is missing, malformed or edited."""
    with suppress(OSError, ValueError):
        record = check(parse_json((folder / MANIFEST).read_text(encoding="utf-8")), dict[str, Any])
        if record.pop("schema", None) == _SCHEMA:
            manifest = make_record(Manifest, record)
            return manifest if manifest.digest in ("", manifest.compute_digest()) else None
    return None


def list_fact_files(folder: Path) -> list[Path]:
    """List the files of facts in a folder."""
    return list_files(folder.absolute(), "facts/*.parquet") if (folder / MANIFEST).is_file() else []


def locate_facts(folder: Path, manifest: Manifest) -> StoredFacts:
    """Return where the facts are, for a session that reads the folder."""
    return StoredFacts(manifest.definitions, {file.stem: read_parquet(file) for file in list_fact_files(folder)})


def total_bytes(folder: Path) -> int:
    """Return the size of the files in a folder, in bytes."""
    return sum(file.stat().st_size for subfolder in ("raw", "facts") for file in (folder / subfolder).glob("*.parquet"))


def write_run_manifest(folder: Path, folders: Sequence[Path], definitions: str) -> None:
    """Write the manifest next to the facts about all traces of a run: which folders they are about."""
    manifest = _RunManifest(_RUN_SCHEMA, _digest_folders(folders), definitions, hash_files(folder))
    text = json.dumps(asdict(manifest), indent=1)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def locate_run_facts(folders: Sequence[Path]) -> StoredFacts | None:
    """Return where the facts about all these folders are, for a session that reads all of them; None if nowhere."""
    fact_files = list_run_files(folders)
    with suppress(OSError, ValueError):
        run_folder = folders[0].parent / RUN_FOLDER if folders else Path()
        run = make_record(_RunManifest, parse_json((run_folder / MANIFEST).read_text(encoding="utf-8")))
        is_current = run.schema == _RUN_SCHEMA and run.identity == _digest_folders(folders)
        if is_current and not _find_changed(run_folder, run.files):
            return StoredFacts(run.definitions, {file.stem: read_parquet(file) for file in fact_files})
    return None


def list_run_files(folders: Sequence[Path]) -> list[Path]:
    """List the files of facts about all traces of a fleet, if these folders belong to one."""
    run_folders = {folder.absolute().parent / RUN_FOLDER for folder in folders if folder.suffix == SUFFIX}
    return list_files(run_folders.pop(), "*.parquet") if len(run_folders) == 1 else []


def _digest_folders(folders: Sequence[Path]) -> str:
    """Return a digest that shows that folders are the same ones, in the same order, made from the same files."""
    values = (value for folder in folders for value in (folder.name, (folder / MANIFEST).read_bytes()))
    return cache_folder.digest(*values)


def write_failures(fleet: Path, failures: dict[str, str | None]) -> None:
    """Write down, next to the folders of a fleet, which files could not be read, and why."""
    path = fleet / FLEET
    text = json.dumps({"schema": _FLEET_SCHEMA, "failed": failures}, indent=1) + "\n"
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        outputs.write_listed(path, text)


def read_failures(fleet: Path) -> dict[str, str] | None:
    """Return the files of a fleet that could not be read, with the reasons; None where the folder is not a fleet's."""
    with suppress(OSError, ValueError):
        record = make_record(_FleetManifest, parse_json((fleet / FLEET).read_text(encoding="utf-8")))
        if record.schema == _FLEET_SCHEMA:
            return {file: reason or "" for file, reason in record.failed.items()}
    return None
