"""Export a report to SQLite with the user's own nsys."""

from __future__ import annotations

import errno
import os
import re
from collections import deque
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from nsys_insight import cache_folder, outputs, own_files, programs
from nsys_insight.errors import ToolError, UsageError
from nsys_insight.ingest import cache_entries, nsys, private
from nsys_insight.ingest.files import Kind, find_neighbor
from nsys_insight.ingest.identify import identify, is_export, make_scannable
from nsys_insight.ingest.waiting import copy_file, wait_for

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterable

    Note = Callable[[str], None]
    Progress = Callable[[int], None]

_PERCENT = re.compile(r"(\d{1,3})%\s*\]")
# How nsys reports what went wrong, the most specific first. Its other output names places in its source code.
_REASONS = tuple(
    re.compile(pattern)
    for pattern in (
        r"Exportation error: (?!.*Throw in function)(.+)",
        r"\[QuadDCommon::tag_message\*\] = (.+)",
        r"std::exception::what: (.+)",
        r"(.*\S.*)",
    )
)
# Errors that say that a folder cannot be written to, regardless of free space.
_NOT_WRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR)
_PAYLOAD_OPTION = "--include-blobs=true"
_DISK_FULL = re.compile(r"disk is full|No space left on device|Disk quota exceeded")
_INCOMPLETE = re.compile(r"magic number mismatch|Cannot read from stream|Version tag is not found")
_REPORT_VERSION = re.compile(rb"NVIDIA Tegra Profiler Report (\d{4})@(\d+)@(\d+)")
_REPORT_BUILD = re.compile(rb"NVIDIA Tegra Profiler Report (?:[\d@]+-\d{4})?(\d{8})\D")
_NSYS_BUILD = re.compile(r"-\d{4}(\d{8})v")


class _ExportFailedError(Exception):
    """One nsys failed to export; another one may succeed."""


def _ignore(_: object) -> None:
    """Ignore a message."""


def get_export(report: Path, *, note: Note = _ignore, progress: Progress | None = None, use_cache: bool = True) -> Path:
    """Return an SQLite export of `report`: a newer one next to it, else the one in the cache, written if needed.

    It can be scanned in place. Without `use_cache`, it is in a temporary folder, which is removed when the process
    ends.

    `progress` is called with full percents while nsys works, `note` with what the user should know.

    Raises:
        ToolError: nsys is missing or failed, or the cache cannot be written to.
    """
    nearby_export = _find_nearby_export(report, note, use_cache=use_cache)
    if nearby_export:
        return nearby_export
    try:
        return _get_cached_export(report, note, progress or _ignore, use_cache=use_cache)
    except OSError as error:
        write_error = error
    # The home folder is read-only or missing, or the cache belongs to another user. One command can run without it.
    if use_cache and write_error.errno in _NOT_WRITABLE:
        try:
            temporary_export = _get_cached_export(report, note, progress or _ignore, use_cache=False)
        except OSError as error:
            write_error = error
        else:
            note(
                f"the cache ({cache_folder.location()}) cannot be written to, so this export is not kept; to keep it:"
                f" nsys-insight export {quote(str(report))}, or point ${cache_folder.FOLDER_VARIABLE} to another folder"
            )
            return temporary_export
    raise ToolError(
        f"the export of {report} cannot be written to the cache ({cache_folder.location()}): {write_error.strerror}",
        f"point ${cache_folder.FOLDER_VARIABLE} to a folder with room for it",
    ) from write_error


def _get_cached_export(report: Path, note: Note, progress: Progress, *, use_cache: bool) -> Path:
    """Return the export in the cache, or in the temporary folder without `use_cache`; write it if needed.

    Raises:
        ToolError: nsys is missing or failed.
        OSError: The folder cannot be written to.
    """
    cache, key = cache_folder.folder(use_cache=use_cache), cache_folder.key(report, private.CACHE_KEY_PART)

    def export_to_cache(tool: nsys.Nsys) -> Path:
        target = cache / f"{key}-{tool.version}.sqlite"
        if not (cache_entries.use(target) and is_export(target)):
            with cache_entries.make_entry(target, "SQLite export", report) as path:
                _run_export(tool, report, path, progress)
                private.remove_private(path)
            note(f"exported {report} with nsys {tool.version}")
        return target

    tools = nsys.find_installed()
    if not tools:
        # Written when there was an nsys, or on another machine with the same home folder.
        cached_exports = [path for path in cache.glob(f"{key}-*.sqlite") if cache_entries.use(path) and is_export(path)]
        if cached_exports:
            return max(cached_exports)
    return _try_newest_first(tools or [nsys.find_newest_nsys()], report, export_to_cache, note)


def export(
    report: Path,
    target: Path | None = None,
    *,
    force: bool = False,
    note: Note = _ignore,
    progress: Progress | None = None,
) -> Path:
    """Export `report` to the SQLite file `target`, by default in the current folder with the report's name; return it.

    Raises:
        UsageError: `report` is already an export, or `target` exists and `force` is not given, or it has no folder.
        TraceError: `report` cannot be read, or nsys did not write it.
        ToolError: nsys is missing or failed, or the disk is full.
    """
    if identify(report) is not Kind.REPORT:
        raise UsageError(f"{report} is an export already", f"query it as it is: nsys-insight top {quote(str(report))}")
    target = target or Path()
    if target.is_dir():
        target /= f"{report.stem}.sqlite"
    if target.exists() and target.samefile(report):
        raise UsageError(f"{target} is the report itself", "choose another name with -o")
    outputs.refuse_existing(target, force=force)
    if not target.parent.is_dir():
        raise UsageError(f"{target.parent} is not a folder", f"make it first: mkdir -p {quote(str(target.parent))}")

    def export_to_target(tool: nsys.Nsys) -> Path:
        with cache_folder.make_work_path(target.resolve()) as path:
            _run_export(tool, report, path, progress or _ignore)
            outputs.move_to_target(path, target, force=True)
        return target

    try:
        return _try_newest_first(nsys.find_installed() or [nsys.find_newest_nsys()], report, export_to_target, note)
    except OSError as error:
        raise ToolError(
            f"{target} cannot be written: {error.strerror}", "choose a folder with room for it with -o"
        ) from error


def _find_nearby_export(report: Path, note: Note, *, use_cache: bool) -> Path | None:
    """Return the export next to the report, if it can be used instead of it."""
    path = report.with_suffix(".sqlite")
    try:
        if path.samefile(report) or find_neighbor(report, path.name) is None:
            return None
        is_older = path.stat().st_mtime < report.stat().st_mtime
    except OSError:
        return None
    if is_older:
        note(f"{path} is older than {report} and not used; name it to use it")
    elif not is_export(path):
        note(f"{path} is not a complete nsys export and is not used")
    else:
        note(f"using {path}, an export newer than {report}")
        return make_scannable(path, note, use_cache=use_cache)
    return None


def _try_newest_first(tools: list[nsys.Nsys], report: Path, attempt: Callable[[nsys.Nsys], Path], note: Note) -> Path:
    """Return the first success among `tools`, which are sorted from newest to oldest."""
    failures: list[str] = []
    for tool in tools:
        try:
            return attempt(tool)
        except _ExportFailedError as failed:
            newer_tool_text = f", which {_name_nsys_of(report)} made" if _is_newer(report, tool) else ""
            failures.append(f"nsys {tool.version} cannot export {report}{newer_tool_text}: {failed}")
            if tool is not tools[-1]:
                note(f"{failures[-1]}; trying another")
    if _INCOMPLETE.search(failures[0]):
        raise ToolError(failures[0], "the report looks incomplete: compare its size with the original's, copy it again")
    tool_paths = ", ".join(str(tool.path) for tool in tools)
    raise ToolError(
        failures[0],
        f"point ${nsys.NSYS_VARIABLE} to a newer nsys than {tool_paths} (https://developer.nvidia.com/nsight-systems),"
        " or export on the machine that made the report: nsys export --type sqlite -o trace.sqlite trace.nsys-rep",
    )


def _is_newer(report: Path, tool: nsys.Nsys) -> bool:
    """Return whether a newer nsys wrote the report, judged by the build numbers; False if they are unknown."""
    with report.open("rb") as stream:
        report_build = _REPORT_BUILD.match(stream.read(200))
    tool_build = _NSYS_BUILD.search(nsys.read_version_output(tool.path))
    return bool(report_build and tool_build and int(report_build[1]) > int(tool_build[1]))


def _name_nsys_of(report: Path) -> str:
    """Name the nsys that wrote the report, with its version if the file begins with it."""
    with report.open("rb") as stream:
        version = _REPORT_VERSION.match(stream.read(200))
    return f"nsys {'.'.join(part.decode() for part in version.groups())}" if version else "a newer nsys"


def _run_export(tool: nsys.Nsys, report: Path, path: Path, progress: Progress) -> None:
    """Export `report` to `path` with one nsys. The folder of `path` is for temporary files."""
    # nsys opens its input for writing, and the report must not change: nsys gets a copy.
    inputs, temporary = path.parent / "input", path.parent / "tmp"
    own_files.make_subfolder(inputs, is_for_others=True)
    own_files.make_subfolder(temporary, is_for_others=True)
    copy = inputs / report.name
    copy_file(report, copy)
    command = [str(tool.path), "export", "-t", "sqlite", "-f", "true", "-o", str(path)]
    # NVTX payloads, such as the message sizes of NCCL. An nsys without this option reports that, and exports nothing.
    code, lines = _run_command([*command, _PAYLOAD_OPTION, str(copy)], temporary, progress)
    if code and any(_PAYLOAD_OPTION.partition("=")[0].strip("-") in line for line in lines):
        code, lines = _run_command([*command, str(copy)], temporary, progress)
    if any(_DISK_FULL.search(line) for line in lines):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path.parent.parent))
    if code:
        raise _ExportFailedError(_find_reason(lines, code))
    if not is_export(path):
        raise _ExportFailedError("it reported success, but wrote no complete export")


def _run_command(command: list[str], folder: Path, progress: Progress) -> tuple[int, list[str]]:
    """Run `command` in `folder`; return its exit code and the last lines of its output, without its progress."""
    import subprocess
    from concurrent.futures import ThreadPoolExecutor

    variables = dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(folder))
    try:
        process = subprocess.Popen(  # noqa: S603 (it is the user's own nsys)
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=os.environ | variables,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,  # to stop a script along with the real nsys that it starts
        )
    except OSError as error:
        raise _ExportFailedError(f"it does not run: {error.strerror}") from error
    with process, ThreadPoolExecutor(1) as pool:
        try:
            reading = pool.submit(_read_output, process.stdout or (), progress)
            wait_for([reading], [_Program(process)])
            return process.wait(), list(reading.result())
        finally:
            if process.poll() is None:
                programs.kill(process)


class _Program(NamedTuple):
    process: subprocess.Popen[str]

    def interrupt(self) -> None:
        """End the program, and so its output."""
        if self.process.poll() is None:
            programs.kill(self.process)


def _read_output(output_lines: Iterable[str], progress: Progress) -> deque[str]:
    """Call `progress` for each new percentage; return the last ones of the other lines.

    nsys ends each state of its progress bar with a carriage return, which counts as a line end in text mode.
    """
    lines: deque[str] = deque(maxlen=100)
    last_percent = -1
    for line in output_lines:
        percent = _PERCENT.search(line)
        if not percent:
            lines.append(line.strip())
        elif int(percent[1]) > last_percent:
            last_percent = int(percent[1])
            progress(last_percent)
    return lines


def _find_reason(lines: list[str], code: int) -> str:
    if code < 0:
        return f"it was killed by signal {-code}; the machine may have run out of memory"
    for pattern in _REASONS:
        for line in reversed(lines):
            match = pattern.search(line)
            if match:
                return match[1].strip()[:300].rstrip(".")
    return f"it ended with exit code {code} without output"
