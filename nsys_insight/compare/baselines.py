"""Baselines by name: saved runs with what they are of, in the repository or in the user's own folder.

In a repository they are JSON files in `.nsys-insight/baselines` of the folder that has `.git`, to be committed with the
code that they measure.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsys_insight.compare.runs import Run, from_json, is_run, to_json
from nsys_insight.errors import UsageError, cannot_write
from nsys_insight.paths import user_folder
from nsys_insight.text.near import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsys_insight.session.session import Session

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_IN_REPOSITORY = Path(".nsys-insight") / "baselines"


@dataclass(frozen=True)
class About:
    """What a baseline is of.

    Attributes:
        saved_at: When it was saved, in ISO 8601.
        tags: What it is marked with.
        params: What the user says of the workload: batch, sequence length, model.
        machine: The GPUs that were used, and the version of nsys.
        commit: The commit of the repository, with +changes where files differ from it; empty if not known.
    """

    saved_at: str
    tags: tuple[str, ...] = ()
    params: dict[str, str] = field(default_factory=dict)
    machine: dict[str, str] = field(default_factory=dict)
    commit: str = ""


@dataclass(frozen=True)
class Baseline:
    """A saved run by its name."""

    name: str
    path: Path
    run: Run
    about: About


def folders(start: Path | None = None) -> list[Path]:
    """Where baselines are looked for: in the repository around a folder, if there is one, then in the user's own."""
    here = (start or Path.cwd()).resolve()
    root = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), None)
    return [*([root / _IN_REPOSITORY] if root else []), user_folder("baselines")]


def save(run: Run, name: str, about: About, *, in_users_folder: bool = False) -> Path:
    """Save a run under a name, in place of one that has it, and return the file.

    Raises:
        UsageError: The name is none for a file, or it cannot be written.
    """
    from nsys_insight import outputs

    path = (folders()[-1] if in_users_folder else folders()[0]) / f"{checked_name(name)}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from None
    outputs.save(path, json.dumps(json.loads(to_json(run)) | {"about": asdict(about)}, allow_nan=False) + "\n")
    return path


def checked_name(name: str) -> str:
    """Return a name that a baseline may have.

    Raises:
        UsageError: It may not be a file's name everywhere.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"a baseline cannot be called {name!r}", "use letters, digits, dots, dashes and underscores")
    return name


def saved() -> list[Baseline]:
    """All baselines, those of the repository first, by name; one of the user's is hidden by the repository's."""
    found: dict[str, Baseline] = {}
    for folder in folders():
        for path in sorted(folder.glob("*.json")) if folder.is_dir() else []:
            found.setdefault(path.stem, read(path))
    return list(found.values())


def named(name: str) -> Baseline | None:
    """The baseline of a name, else the one saved last with that tag; None if there is neither."""
    if not _NAME.fullmatch(name):
        return None
    for folder in folders():
        path = folder / f"{name}.json"
        if path.is_file():
            return read(path)
    tagged = [one for one in saved() if name in one.about.tags]
    return max(tagged, key=lambda one: one.about.saved_at, default=None)


def meant(name: str) -> Baseline:
    """The baseline of a name or tag.

    Raises:
        UsageError: There is none.
    """
    found = named(name)
    if found is None:
        names = [one.name for one in saved()]
        hint = did_you_mean(name, names) or (
            f"there are: {', '.join(names)}" if names else "save one: nsys-insight baseline save TRACE --name main"
        )
        raise UsageError(f"there is no baseline {name!r}", hint)
    return found


def read(path: Path) -> Baseline:
    """Read a saved run, with what it is of where it says.

    Raises:
        UsageError: It is none, or of another version.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as JSON: {error}", "save it again, or remove it") from None
    if not is_run(found):
        raise UsageError(f"{path} is no baseline", "nsys-insight baseline save TRACE --name main writes one")
    return Baseline(path.stem, path, from_json(found, path), _about(found))


def _about(found: dict[str, Any]) -> About:
    said = found.get("about") or {}
    return About(
        saved_at=str(said.get("saved_at", "")),
        tags=tuple(map(str, said.get("tags", ()))),
        params={str(name): str(value) for name, value in said.get("params", {}).items()},
        machine={str(name): str(value) for name, value in said.get("machine", {}).items()},
        commit=str(said.get("commit", "")),
    )


def machine(trace: Session) -> dict[str, str]:
    """The GPUs that a trace used, and the version of the nsys that recorded it."""
    gpus = trace.rows(
        "SELECT g.name, count(*) AS n FROM gpus AS g SEMI JOIN used_gpus USING (gpu_id) GROUP BY g.name ORDER BY g.name"
    )
    version = trace.rows("SELECT value FROM capture WHERE name = 'EXPORT_PRODUCT_VERSION'")
    told = {"gpu": ", ".join(f"{row.n} x {row.name}" if row.n > 1 else str(row.name) for row in gpus if row.name)}
    told["nsys"] = str(version[0].value) if version else ""
    return {name: value for name, value in told.items() if value}


def params_of(texts: Iterable[str]) -> dict[str, str]:
    """Read NAME=VALUE of each.

    Raises:
        UsageError: One is not of that form.
    """
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--param takes NAME=VALUE, not {text!r}", "--param batch=8")
        found[name.strip()] = value.strip()
    return found


def unlike(baseline: About, machine_now: dict[str, str], params_now: dict[str, str]) -> list[str]:
    """Differences of machine and workload between a run and a baseline."""
    said = []
    old, new = baseline.machine.get("gpu"), machine_now.get("gpu")
    if old and new and old != new:
        said.append(f"the baseline was measured on another GPU ({old}; this is {new}): times are not comparable")
    for name in sorted(baseline.params.keys() | params_now.keys()) if params_now else []:
        before, after = baseline.params.get(name), params_now.get(name)
        if before != after:
            said.append(f"different workload: {name} was {before or 'not said'} and is {after or 'not said'}")
    return said
