"""Select traces: from the arguments of a command, which may be missing or a folder, or from an agent's request."""

from __future__ import annotations

import os
from contextlib import suppress
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight import cache_folder
from nsys_insight.errors import TraceError, UsageError
from nsys_insight.ingest.files import is_within, list_parquet_files
from nsys_insight.ingest.identify import REPORT_SUFFIXES, is_export, is_parquet_folder
from nsys_insight.paths import demo_trace, expand_home
from nsys_insight.text.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TRACE_VARIABLE = "NSYS_INSIGHT_TRACE"

_MAX_LISTED = 10
_MAX_LISTED_TO_AGENTS = 20


def resolve_trace_path(argument: Path | None) -> tuple[Path, str]:
    """Return the trace to use, and a note that names it if the user did not.

    The order is: `argument`, `$NSYS_INSIGHT_TRACE`, the only trace in the working folder, the trace used last there.
    The first two may be a folder that holds one trace. `source.identify` checks later whether the file can be read.

    Raises:
        UsageError: No trace fits, or more than one.
        TraceError: A folder cannot be listed.
    """
    if argument:
        return _resolve_folder(_resolve_demo(argument), f"the only trace in {argument}")
    variable_value = os.environ.get(TRACE_VARIABLE)
    if variable_value:
        path, _ = _resolve_folder(expand_home(variable_value), "")
        return path, f"using {path} (${TRACE_VARIABLE})"
    traces = list_traces(Path())
    if len(traces) == 1:
        return traces[0], f"using {traces[0]} (the only trace in this folder)"
    last_trace = _read_last_used()
    if last_trace:
        return last_trace, f"using {last_trace} (the trace used last in this folder)"
    raise _make_count_error(traces)


def resolve_trace_paths(arguments: Sequence[Path], *, is_name_enough: bool = False) -> list[Path]:
    """Return the traces of several arguments. A folder stands for all traces in it, a pattern for all files it fits.

    With `is_name_enough`, a folder also stands for files that have a trace's suffix, without reading them.

    Raises:
        UsageError: A folder holds no trace, or a pattern fits no file.
        TraceError: A folder cannot be listed.
    """
    traces: list[Path] = []
    for argument in arguments:
        if is_pattern(argument):
            matches = [Path(path) for path in sorted(glob(str(argument), recursive=True))]  # noqa: PTH207 - may be absolute
            if not matches:
                raise UsageError(f"no file is called {argument}", "quote patterns: 'run/rank*.nsys-rep'")
            traces += matches
        elif argument.is_dir() and not is_parquet_folder(argument):
            folder_traces = list_traces(argument, is_name_enough=is_name_enough)
            if not folder_traces:
                raise _make_count_error(folder_traces, argument)
            traces += folder_traces
        else:
            traces.append(_resolve_demo(argument))
    return list(dict.fromkeys(traces))


def _resolve_demo(argument: Path) -> Path:
    """Return the sample trace for the name demo, if there is no such file."""
    return demo_trace() if str(argument) == "demo" and not argument.exists() else argument


def is_pattern(argument: Path) -> bool:
    """Return whether an argument is a pattern: it has wildcards, and there is no file of that name."""
    # os.path.exists accepts names that are too long for the file system.
    return has_magic(str(argument)) and not os.path.exists(argument)  # noqa: PTH110


def list_traces(folder: Path, *, is_name_enough: bool = False) -> list[Path]:
    """Return the traces in `folder` by name: reports, nsys's SQLite exports, and folders of Parquet files.

    A report replaces the exports of the same name. SQLite files are checked to be exports, unless `is_name_enough`.

    Raises:
        TraceError: The folder cannot be listed.
    """
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise TraceError(f"{folder} cannot be listed: {error.strerror}", "name the trace itself") from error
    reports = [path for path in entries if path.suffix in REPORT_SUFFIXES and path.is_file()]
    exports = [path for path in entries if path.suffix == ".sqlite" and (is_name_enough or is_export(path))]
    # A hidden folder is incomplete: `convert` writes it, and may have been killed.
    folders = [path for path in entries if not path.name.startswith(".") and path.is_dir() and is_parquet_folder(path)]
    traces: dict[str, Path] = {}
    for path in (*reports, *exports):
        traces.setdefault(path.stem, path)
    for path in folders:
        traces.setdefault(path.name.removesuffix("_pqtdir"), path)
    return sorted(traces.values())


def remember_trace(trace: Path) -> None:
    """Store that `trace` was used in the working folder. Errors are ignored."""
    with suppress(OSError), cache_folder.write_atomically(_get_memory_file()) as path:
        path.touch(mode=0o600)
        path.write_bytes(os.fsencode(trace.absolute()))


class Traces:
    """The traces that may be queried."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """Take traces and folders.

        Raises:
            UsageError: A path does not exist.
        """
        self._files: list[Path] = []
        self._folders: list[Path] = []
        for path in map(expand_home, paths):
            if not path.exists():
                raise UsageError(f"{path} does not exist", "name traces, or folders with traces")
            is_folder = path.is_dir() and not is_parquet_folder(path)
            (self._folders if is_folder else self._files).append(path)

    def list_names(self) -> list[str]:
        """List the given traces, and the traces directly in the given folders."""
        folder_traces = (trace for folder in self._folders for trace in list_traces(folder) if self._is_allowed(trace))
        return [str(path) for path in (*self._files, *folder_traces)]

    def find(self, requested_name: str | None) -> Path:
        """Return the requested trace: a path, a name below one of the folders, or None for the only trace.

        The suffix of a name may be left out if only one trace has the name.

        Raises:
            UsageError: The trace does not exist, or may not be queried.
        """
        if not requested_name:
            names = self.list_names()
            if len(names) != 1:
                raise self._make_refusal("it is unclear which trace is meant")
            return Path(names[0])
        for path in self._list_matches(requested_name):
            # os.path.exists accepts names that are too long for the file system; pathlib raises an error.
            if os.path.exists(path):  # noqa: PTH110
                if file := next((file for file in self._files if file.resolve() == path.resolve()), None):
                    return file
                if self._is_allowed(path):
                    return path
        names = self.list_names()
        matches = [name for name in names if Path(name).stem == requested_name]
        if len(matches) == 1:
            return Path(matches[0])
        suggestion = did_you_mean(
            requested_name, [Path(name).name for name in names] + [Path(name).stem for name in names]
        )
        raise self._make_refusal(f"there is no trace {requested_name!r} that may be queried", suggestion)

    def _list_matches(self, requested_name: str) -> Iterator[Path]:
        yield from (path for path in self._files if requested_name in (path.name, str(path)))
        if "\0" not in requested_name:
            yield Path(requested_name)
            yield from (folder / requested_name for folder in self._folders)

    def _is_allowed(self, path: Path) -> bool:
        """Return whether a trace is below a given folder, and so are its own files and those next to it.

        Links are followed.
        """
        if not any(is_within(path, root) and is_within(path.parent, root) for root in self._folders):
            return False
        if not path.is_dir():
            return True
        with suppress(TraceError):  # one of its files is elsewhere
            return bool(list_parquet_files(path)) and is_parquet_folder(path)
        return False

    def _make_refusal(self, message: str, suggestion: str = "") -> UsageError:
        names = self.list_names()
        remainder = f" and {len(names) - _MAX_LISTED_TO_AGENTS} more" if len(names) > _MAX_LISTED_TO_AGENTS else ""
        listing = f"traces: {', '.join(names[:_MAX_LISTED_TO_AGENTS]) or 'none right in the folders'}{remainder}"
        return UsageError(message, f"{suggestion} {listing}".strip())


def _read_last_used() -> Path | None:
    with suppress(OSError, ValueError):
        memory_file = _get_memory_file()
        path = Path(os.fsdecode(memory_file.read_bytes()))
        if path.exists():
            cache_folder.touch(memory_file)
            # A trace below the folder is given relative to it, as the user would type it.
            return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return None


def _get_memory_file() -> Path:
    return cache_folder.folder() / f"{cache_folder.digest('used last in', os.path.realpath('.'))}.last"


def _resolve_folder(path: Path, reason: str) -> tuple[Path, str]:
    """Return `path` if it is a trace, or the only trace in it if it is a folder. `reason` is part of the note."""
    if not os.path.isdir(path) or is_parquet_folder(path):  # noqa: PTH112 - a name may be too long for a file system
        return path, ""
    traces = list_traces(path)
    if not traces and any(path.glob("*.arrow")):
        raise UsageError(
            f"{path} is an export of type arrowdir, which is not read",
            "export the report again: nsys export --type parquetdir -o trace_parquet trace.nsys-rep",
        )
    if len(traces) != 1:
        raise _make_count_error(traces, path)
    return traces[0], f"using {traces[0]} ({reason})"


def _make_count_error(traces: list[Path], folder: Path | None = None) -> UsageError:
    """Return the error for no trace or several, in a folder that was named or in the working folder."""
    if not traces:
        return UsageError(
            f"there is no trace in {folder}" if folder else "no trace was named, and there is none in this folder",
            f"name a .nsys-rep or .sqlite file, or set ${TRACE_VARIABLE}; to make one: nsys profile -o trace COMMAND",
        )
    names = ", ".join(str(trace) for trace in traces[:_MAX_LISTED])
    remainder = f" and {len(traces) - _MAX_LISTED} more" if len(traces) > _MAX_LISTED else ""
    return UsageError(
        f"{len(traces)} traces are in {folder or 'this folder'}: {names}{remainder}",
        f"name one of them, or set ${TRACE_VARIABLE}={traces[0]}",
    )
