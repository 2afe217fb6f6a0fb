"""Which traces are meant: by an argument that is left out or is a folder, or by an agent that asks the server."""

from __future__ import annotations

import os
from contextlib import suppress
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight.errors import TraceError, UsageError
from nsys_insight.ingest import cache_folder
from nsys_insight.ingest.identify import REPORT_SUFFIXES, is_export, is_parquet_folder
from nsys_insight.paths import expanded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TRACE_VARIABLE = "NSYS_INSIGHT_TRACE"

_LISTED = 10
_LISTED_TO_AGENTS = 20


def resolve(argument: Path | None, folder: Path = Path()) -> tuple[Path, str]:
    """Return the trace to use in `folder`, and a note that says which if the user did not name it.

    In this order: `argument`, `$NSYS_INSIGHT_TRACE`, the only trace in `folder`, the trace used last in `folder`. The
    first two may be a folder that holds one trace. Whether the file can be read is for `source.identify` to say.

    Raises:
        UsageError: There is none, or more than one.
        TraceError: A folder cannot be listed.
    """
    if argument:
        return _only(argument, f"the only trace in {argument}")
    named = os.environ.get(TRACE_VARIABLE)
    if named:
        path, _ = _only(expanded(named), "")
        return path, f"using {path} (${TRACE_VARIABLE})"
    traces = candidates(folder)
    if len(traces) == 1:
        return traces[0], f"using {traces[0]} (the only trace in this folder)"
    used = _used_last(folder)
    if used:
        return used, f"using {used} (the trace used last in this folder)"
    raise _not_one(traces, "this folder")


def resolve_all(arguments: Sequence[Path], *, unread: bool = False) -> list[Path]:
    """Return the traces that several arguments name; a folder stands for all traces in it, a pattern for what it fits.

    With `unread`, also for files that are called as traces are, whatever is in them.

    Raises:
        UsageError: A folder holds none, or a pattern fits none.
        TraceError: A folder cannot be listed.
    """
    traces: list[Path] = []
    for argument in arguments:
        if is_pattern(argument):
            found = [Path(path) for path in sorted(glob(str(argument), recursive=True))]  # noqa: PTH207 - it may be absolute
            if not found:
                raise UsageError(f"no file is called {argument}", "in quotes, * and ? are wildcards")
            traces += found
        elif argument.is_dir() and not is_parquet_folder(argument):
            found = candidates(argument, unread=unread)
            if not found:
                raise _not_one(found, str(argument))
            traces += found
        else:
            traces.append(argument)
    return list(dict.fromkeys(traces))


def is_pattern(argument: Path) -> bool:
    """Tell whether an argument stands for the files that it fits: it came here as it is, and no file is called so."""
    # A name may be too long for a file system.
    return has_magic(str(argument)) and not os.path.exists(argument)  # noqa: PTH110


def candidates(folder: Path, *, unread: bool = False) -> list[Path]:
    """Return the traces in `folder` by name: reports, nsys's SQLite exports, and folders of Parquet files.

    A report stands for the exports of its name. What a SQLite file is, is looked at, unless it is to be left `unread`.

    Raises:
        TraceError: The folder cannot be listed.
    """
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise TraceError(f"{folder} cannot be listed: {error.strerror}", "name the trace itself") from error
    reports = [path for path in entries if path.suffix in REPORT_SUFFIXES and path.is_file()]
    exports = [path for path in entries if path.suffix == ".sqlite" and (unread or is_export(path))]
    # One that is hidden is on its way to become one: `convert` may have been killed.
    folders = [path for path in entries if not path.name.startswith(".") and path.is_dir() and is_parquet_folder(path)]
    traces: dict[str, Path] = {}
    for path in (*reports, *exports):
        traces.setdefault(path.stem, path)
    for path in folders:
        traces.setdefault(path.name.removesuffix("_pqtdir"), path)
    return sorted(traces.values())


def remember(trace: Path, folder: Path = Path()) -> None:
    """Keep in mind that `trace` was used in `folder`; that this may fail is no matter."""
    with suppress(OSError), cache_folder.building(_memory(folder)) as path:
        path.touch(mode=0o600)
        path.write_bytes(os.fsencode(trace.absolute()))


class Traces:
    """The traces that may be queried."""

    def __init__(self, given: Sequence[Path]) -> None:
        """Take the traces and folders that were named.

        Raises:
            UsageError: One does not exist.
        """
        self._files: list[Path] = []
        self._folders: list[Path] = []
        for path in map(expanded, given):
            if not path.exists():
                raise UsageError(f"{path} does not exist", "name traces, or folders with traces")
            is_folder = path.is_dir() and not is_parquet_folder(path)
            (self._folders if is_folder else self._files).append(path)

    def listed(self) -> list[str]:
        """Name the traces: those that were given, and those right in the folders."""
        return [
            str(path) for path in (*self._files, *(each for folder in self._folders for each in candidates(folder)))
        ]

    def find(self, asked: str | None) -> Path:
        """Return the trace that is meant: a path, or a name below one of the folders; None where there is one alone.

        Raises:
            UsageError: It is not there, or may not be asked.
        """
        if not asked:
            only = self.listed()
            if len(only) != 1:
                raise self._refusal("it is unclear which trace is meant")
            return Path(only[0])
        for path in self._meant(asked):
            # A name may be too long for a file system, which pathlib does not forgive.
            if os.path.exists(path) and self._is_allowed(path):  # noqa: PTH110
                return path
        raise self._refusal(f"there is no trace {asked!r} that may be queried")

    def _meant(self, asked: str) -> Iterator[Path]:
        yield from (path for path in self._files if asked in (path.name, str(path)))
        if "\0" not in asked:
            yield Path(asked)
            yield from (folder / asked for folder in self._folders)

    def _is_allowed(self, path: Path) -> bool:
        """Whether a path leads to a trace that was named, or below a folder that was; links are followed."""
        real = path.resolve()
        if any(real == file.resolve() for file in self._files):
            return True
        roots = [folder.resolve() for folder in self._folders]
        if not any(real.is_relative_to(root) for root in roots):
            return False
        if not real.is_dir():
            return True
        # The tables of a folder are files in it, and these may be links, too.
        inside = [Path(entry.path).resolve() for entry in os.scandir(real)]
        return is_parquet_folder(real) and all(any(one.is_relative_to(root) for root in roots) for one in inside)

    def _refusal(self, message: str) -> UsageError:
        known = self.listed()
        more = f" and {len(known) - _LISTED_TO_AGENTS} more" if len(known) > _LISTED_TO_AGENTS else ""
        return UsageError(
            message, f"traces: {', '.join(known[:_LISTED_TO_AGENTS]) or 'none right in the folders'}{more}"
        )


def _used_last(folder: Path) -> Path | None:
    with suppress(OSError, ValueError):
        memory = _memory(folder)
        path = Path(os.fsdecode(memory.read_bytes()))
        if path.exists():
            cache_folder.touch(memory)
            # As the user would type it, where it lies below.
            here = folder.absolute()
            return folder / path.relative_to(here) if path.is_relative_to(here) else path
    return None


def _memory(folder: Path) -> Path:
    return cache_folder.folder() / f"{cache_folder.digest('used last in', os.path.realpath(folder))}.last"


def _only(path: Path, why: str) -> tuple[Path, str]:
    """Return `path`, or the one trace in it if it is a folder."""
    if not os.path.isdir(path) or is_parquet_folder(path):  # noqa: PTH112 - a name may be too long for a file system
        return path, ""
    traces = candidates(path)
    if len(traces) != 1:
        raise _not_one(traces, str(path))
    return traces[0], f"using {traces[0]} ({why})"


def _not_one(traces: list[Path], where: str) -> UsageError:
    if not traces:
        return UsageError(
            f"no trace was named, and there is none in {where}",
            f"name a .nsys-rep or .sqlite file, or set ${TRACE_VARIABLE}; to make one: nsys profile -o trace COMMAND",
        )
    names = ", ".join(str(trace) for trace in traces[:_LISTED])
    more = f" and {len(traces) - _LISTED} more" if len(traces) > _LISTED else ""
    return UsageError(
        f"{len(traces)} traces are in {where}: {names}{more}", f"name one of them, or set ${TRACE_VARIABLE}={traces[0]}"
    )
