"""Named baselines: saved runs with their machine and workload, in the repository or in the user's own folder.

In a repository, they are JSON files in `.nsys-insight/baselines`, next to `.git`. Commit them with the code that they
measure.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight.compare.runs import Run, from_json, is_run, to_json
from nsys_insight.errors import UsageError, cannot_write_error, read_text
from nsys_insight.paths import is_of_another_user, list_project_folders, user_folder
from nsys_insight.records import RecordError, make_record, parse_json
from nsys_insight.text.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nsys_insight.session.session import Session

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_IN_REPOSITORY = Path(".nsys-insight") / "baselines"


@dataclass(frozen=True)
class BaselineInfo:
    """The origin of a baseline: machine, workload and commit.

    Attributes:
        saved_at: Time of saving, in ISO 8601.
        tags: Tags that the user gave it.
        params: Parameters of the workload that the user gave: batch, sequence length, model.
        machine: The GPUs that the run used, and the version of nsys.
        commit: Commit of the repository, with +changes if files differ from it, +unchecked if that is unknown; empty
            if the commit is unknown.
    """

    saved_at: str
    tags: tuple[str, ...] = ()
    params: dict[str, str] = field(default_factory=dict)
    machine: dict[str, str] = field(default_factory=dict)
    commit: str = ""


@dataclass(frozen=True)
class Baseline:
    """A saved run and its name."""

    name: str
    path: Path
    run: Run
    info: BaselineInfo


def list_folders() -> list[Path]:
    """Return the folders to search: that of the repository around this folder, if there is one, then the user's own.

    A repository around the home folder is not searched.
    """
    root = list_project_folders()[-1]
    return [*([root / _IN_REPOSITORY] if (root / ".git").exists() else []), user_folder("baselines")]


def save(run: Run, name: str, info: BaselineInfo, *, in_users_folder: bool = False) -> Path:
    """Save a run under a name and return the file. A baseline with the same name is replaced.

    Raises:
        UsageError: The name is not a valid file name, or the file cannot be written.
    """
    from nsys_insight import outputs

    folder = list_folders()[-1] if in_users_folder else list_folders()[0]
    path = folder / f"{check_name(name)}.json"
    # The folders of a repository are as its author made them.
    root = folder.parents[len(_IN_REPOSITORY.parts) - 1] if folder != list_folders()[-1] else folder
    if path.is_symlink() or not path.resolve().is_relative_to(root.resolve()):
        raise UsageError(f"{path} is a link to {path.resolve()}: nothing is written", "remove the link, or add --user")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write_error(path, error) from None
    is_baseline = path.is_file() and bool(read(path))
    text = json.dumps(json.loads(to_json(run)) | {"about": asdict(info)}, allow_nan=False)
    outputs.write_output(path, f"{text}\n", force=is_baseline)
    return path


def check_name(name: str) -> str:
    """Return the name if it is valid for a baseline.

    Raises:
        UsageError: The name is not a valid file name on every system.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"a baseline cannot be called {name!r}", "use letters, digits, dots, dashes and underscores")
    return name


def list_baselines() -> list[Baseline]:
    """Return all baselines, sorted by name, those of the repository first.

    A baseline of the repository hides the user's baseline of the same name.
    """
    baselines: dict[str, Baseline] = {}
    for folder in list_folders():
        for path in sorted(folder.glob("*.json")) if folder.is_dir() else []:
            baselines.setdefault(path.stem, read(path))
    return list(baselines.values())


def find_baseline(name: str) -> Baseline | None:
    """Return the baseline with this name, else the latest one with this tag; None if there is neither."""
    if not _NAME.fullmatch(name):
        return None
    for folder in list_folders():
        path = folder / f"{name}.json"
        if path.is_file():
            return read(path)
    tagged_baselines = [baseline for baseline in list_baselines() if name in baseline.info.tags]
    return max(tagged_baselines, key=lambda baseline: baseline.info.saved_at, default=None)


def find_file(path: Path, note: Callable[[str], None] = lambda _: None) -> Path:
    """Return the file of a baseline if the path is a baseline's name and not a file; otherwise return the path.

    A note says which file a name stands for.
    """
    if path.exists() or path.parent != Path():
        return path
    baseline = find_baseline(path.name)
    if baseline is None:
        return path
    note(describe_origin(baseline))
    return baseline.path


def describe_origin(baseline: Baseline) -> str:
    """Say which file was found for the name or tag of a baseline, whose it is, and which others it hides."""
    hidden = [path for folder in list_folders() if (path := folder / baseline.path.name) != baseline.path]
    hiding = "".join(f"; it hides {path}" for path in hidden if path.is_file())
    owner = ", which belongs to another user" if is_of_another_user(baseline.path) else ""
    return f"the baseline {baseline.name} is the file {baseline.path}{owner}{hiding}"


def get_baseline(name: str) -> Baseline:
    """Return the baseline with this name or tag.

    Raises:
        UsageError: No baseline has it.
    """
    matching_baseline = find_baseline(name)
    if matching_baseline is None:
        names = [baseline.name for baseline in list_baselines()]
        hint = did_you_mean(name, names) or (
            f"there are: {', '.join(names)}" if names else "save one: nsys-insight baseline save TRACE --name main"
        )
        raise UsageError(f"there is no baseline {name!r}", hint)
    return matching_baseline


def read(path: Path) -> Baseline:
    """Read a saved run, with its origin if the file has it.

    Raises:
        UsageError: The file is not a saved run, or it is of another version.
    """
    try:
        data = parse_json(read_text(path, "nsys-insight baseline list"))
    except ValueError as error:
        raise UsageError(f"{path} cannot be read as JSON: {error}", "save it again, or remove it") from None
    if not is_run(data):
        raise UsageError(f"{path} is not a baseline", "nsys-insight baseline save TRACE --name main writes one")
    try:
        info = make_record(BaselineInfo, data.get("about") or {"saved_at": ""}, "about")
    except RecordError as error:
        raise UsageError(f"{path} cannot be read: {error}", "save it again, or remove it") from None
    return Baseline(path.stem, path, from_json(data, path), info)


def read_machine(trace: Session) -> dict[str, str]:
    """Return the GPUs that a trace used, and the version of nsys that recorded it."""
    gpus = trace.rows(
        "SELECT g.name, count(*) AS n FROM gpus AS g SEMI JOIN used_gpus USING (gpu_id) GROUP BY g.name ORDER BY g.name"
    )
    version = trace.rows("SELECT value FROM capture WHERE name = 'EXPORT_PRODUCT_VERSION'")
    machine_facts = {
        "gpu": ", ".join(f"{row.n} x {row.name}" if row.n > 1 else str(row.name) for row in gpus if row.name)
    }
    machine_facts["nsys"] = str(version[0].value) if version else ""
    return {name: value for name, value in machine_facts.items() if value}


def parse_params(texts: Iterable[str]) -> dict[str, str]:
    """Parse texts of the form NAME=VALUE.

    Raises:
        UsageError: A text does not have this form.
    """
    params = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--param takes NAME=VALUE, not {text!r}", "--param batch=8")
        params[name.strip()] = value.strip()
    return params


def list_differences(baseline: BaselineInfo, machine_now: dict[str, str], params_now: dict[str, str]) -> list[str]:
    """Describe the differences in machine and workload between a run and a baseline."""
    differences = []
    old, new = baseline.machine.get("gpu"), machine_now.get("gpu")
    if old and new and old != new:
        differences.append(f"the baseline was measured on another GPU ({old}; this is {new}): times are not comparable")
    for name in sorted(baseline.params.keys() | params_now.keys()) if params_now else []:
        before, after = baseline.params.get(name), params_now.get(name)
        if before != after:
            differences.append(f"different workload: {name} was {before or 'not given'} and is {after or 'not given'}")
    return differences
