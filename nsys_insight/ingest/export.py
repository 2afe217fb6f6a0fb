"""From a report to an SQLite export of it, made by the user's own nsys."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from nsys_insight import outputs
from nsys_insight.errors import ToolError, UsageError
from nsys_insight.ingest import cache_entries, cache_folder, nsys, private
from nsys_insight.ingest.files import Kind
from nsys_insight.ingest.identify import identify, is_export, settled

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterable

    Note = Callable[[str], None]
    Progress = Callable[[int], None]

_PERCENT = re.compile(r"(\d{1,3})%\s*\]")
# How nsys says what went wrong, the best first. The rest of what it prints is where in its source code it happened.
_REASONS = tuple(
    re.compile(pattern)
    for pattern in (
        r"Exportation error: (?!.*Throw in function)(.+)",
        r"\[QuadDCommon::tag_message\*\] = (.+)",
        r"std::exception::what: (.+)",
        r"(.*\S.*)",
    )
)
# Why nothing can be written where the cache is, however much room there is.
_NO_PLACE = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR)
_PAYLOADS = "--include-blobs=true"
_DISK_FULL = re.compile(r"disk is full|No space left on device|Disk quota exceeded")
_INCOMPLETE = re.compile(r"magic number mismatch|Cannot read from stream|Version tag is not found")
_REPORT_BUILD = re.compile(rb"NVIDIA Tegra Profiler Report (?:[\d@]+-\d{4})?(\d{8})\D")
_NSYS_BUILD = re.compile(r"-\d{4}(\d{8})v")


class _ExportFailedError(Exception):
    """What one nsys had to say; another one may do better."""


def _silent(_: object) -> None:
    """Tell nobody."""


def exported(report: Path, *, note: Note = _silent, progress: Progress | None = None, lasting: bool = True) -> Path:
    """Return an SQLite export of `report`: the one beside it if that is newer, else one in the cache, made if need be.

    It can be scanned in place. Without `lasting`, a temporary folder stands for the cache, and goes with the process.

    `progress` is called with whole percents while nsys works, `note` with what the user ought to know.

    Raises:
        ToolError: nsys is missing or failed, or the cache cannot be written to.
    """
    beside = _beside(report, note, lasting=lasting)
    if beside:
        return beside
    try:
        return _cached(report, note, progress or _silent, lasting=lasting)
    except OSError as error:
        why = error
    # A home that can only be read, none at all, or somebody else's cache: one command can do without.
    if lasting and why.errno in _NO_PLACE:
        try:
            made = _cached(report, note, progress or _silent, lasting=False)
        except OSError as error:
            why = error
        else:
            note(
                f"the cache ({cache_folder.location()}) cannot be written to, so this export is not kept; to keep it:"
                f" nsys-insight export {quote(str(report))}, or point ${cache_folder.FOLDER_VARIABLE} to another folder"
            )
            return made
    raise ToolError(
        f"the export of {report} cannot be written to the cache ({cache_folder.location()}): {why.strerror}",
        f"point ${cache_folder.FOLDER_VARIABLE} to a folder with room for it",
    ) from why


def _cached(report: Path, note: Note, progress: Progress, *, lasting: bool) -> Path:
    """Return the export in the cache, or in the temporary folder that stands for it, made if need be.

    Raises:
        ToolError: nsys is missing or failed.
        OSError: Nothing can be written there.
    """
    cache, key = cache_folder.folder(lasting=lasting), cache_folder.key(report, private.WITHOUT)

    def cached(tool: nsys.Nsys) -> Path:
        target = cache / f"{key}-{tool.version}.sqlite"
        if not (cache_entries.use(target) and is_export(target)):
            with cache_entries.making(target, "SQLite export", report) as path:
                _run(tool, report, path, progress)
                private.forget(path)
            note(f"exported {report} with nsys {tool.version}")
        return target

    tools = nsys.installed()
    if not tools:
        # Made when there still was an nsys, or on another machine with the same home folder.
        kept = [path for path in cache.glob(f"{key}-*.sqlite") if cache_entries.use(path) and is_export(path)]
        if kept:
            return max(kept)
    return _by_newest(tools or [nsys.newest_nsys()], report, cached, note)


def export(
    report: Path,
    target: Path | None = None,
    *,
    force: bool = False,
    note: Note = _silent,
    progress: Progress | None = None,
) -> Path:
    """Export `report` to the SQLite file `target`, by default named as the report in the current folder; return it.

    Raises:
        UsageError: `report` is already an export, or `target` exists and `force` is not given, or it has no folder.
        TraceError: `report` cannot be read, or is nothing that nsys wrote.
        ToolError: nsys is missing or failed, or the disk is full.
    """
    if identify(report) is not Kind.REPORT:
        raise UsageError(f"{report} is an export already", f"query it as it is: nsys-insight top {quote(str(report))}")
    target = target or Path()
    if target.is_dir():
        target /= f"{report.stem}.sqlite"
    if target.exists() and target.samefile(report):
        raise UsageError(f"{target} is the report itself", "choose another name with -o")
    if target.exists() and not force:
        raise UsageError(f"{target} exists already", "overwrite it with --force, or choose another name with -o")
    if not target.parent.is_dir():
        raise UsageError(f"{target.parent} is not a folder", f"make it first: mkdir -p {quote(str(target.parent))}")

    def asked(tool: nsys.Nsys) -> Path:
        with cache_folder.working(target.resolve()) as path:
            _run(tool, report, path, progress or _silent)
            outputs.place(path, target, force=True)
        return target

    try:
        return _by_newest(nsys.installed() or [nsys.newest_nsys()], report, asked, note)
    except OSError as error:
        raise ToolError(
            f"{target} cannot be written: {error.strerror}", "choose a folder with room for it with -o"
        ) from error


def _beside(report: Path, note: Note, *, lasting: bool) -> Path | None:
    """Return the export that lies beside the report, if it can stand for it."""
    path = report.with_suffix(".sqlite")
    try:
        if path.samefile(report):
            return None
        older = path.stat().st_mtime < report.stat().st_mtime
    except OSError:
        return None
    if older:
        note(f"{path} is older than {report} and not used; name it to use it")
    elif not is_export(path):
        note(f"{path} is not a complete nsys export and is not used")
    else:
        note(f"using {path}, an export newer than {report}")
        return settled(path, note, lasting=lasting)
    return None


def _by_newest(tools: list[nsys.Nsys], report: Path, attempt: Callable[[nsys.Nsys], Path], note: Note) -> Path:
    """Return the first success among `tools`, which are the newest first."""
    failures: list[str] = []
    for tool in tools:
        try:
            return attempt(tool)
        except _ExportFailedError as failed:
            newer = ", which a newer nsys made" if _is_newer(report, tool) else ""
            failures.append(f"nsys {tool.version} cannot export {report}{newer}: {failed}")
            if tool is not tools[-1]:
                note(f"{failures[-1]}; trying another")
    if _INCOMPLETE.search(failures[0]):
        raise ToolError(failures[0], "the report looks incomplete: compare its size with the original's, copy it again")
    used = ", ".join(str(tool.path) for tool in tools)
    raise ToolError(
        failures[0],
        f"point ${nsys.NSYS_VARIABLE} to a newer nsys than {used}, or export on the machine that made the report: "
        "nsys export --type sqlite -o trace.sqlite trace.nsys-rep",
    )


def _is_newer(report: Path, tool: nsys.Nsys) -> bool:
    """Tell by their build numbers whether the report was made by a newer nsys; False if that is unknown."""
    with report.open("rb") as stream:
        made_by = _REPORT_BUILD.match(stream.read(200))
    ours = _NSYS_BUILD.search(nsys.printed_version(tool.path))
    return bool(made_by and ours and int(made_by[1]) > int(ours[1]))


def _run(tool: nsys.Nsys, report: Path, path: Path, progress: Progress) -> None:
    """Export `report` to `path` with one nsys, in a folder where other files may be left."""
    import shutil

    # nsys opens what it exports for writing, and the report is evidence: nsys gets a copy.
    inputs, temporary = path.parent / "input", path.parent / "tmp"
    inputs.mkdir()
    temporary.mkdir()
    copy = Path(shutil.copyfile(report, inputs / report.name))
    command = [str(tool.path), "export", "-t", "sqlite", "-f", "true", "-o", str(path)]
    # Payloads of NVTX, such as the sizes that NCCL says; an nsys that has no such option says so, and does nothing.
    code, lines = _output([*command, _PAYLOADS, str(copy)], temporary, progress)
    if code and any(_PAYLOADS.partition("=")[0].strip("-") in line for line in lines):
        code, lines = _output([*command, str(copy)], temporary, progress)
    if any(_DISK_FULL.search(line) for line in lines):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path.parent.parent))
    if code:
        raise _ExportFailedError(_reason(lines, code))
    if not is_export(path):
        raise _ExportFailedError("it reported success, but wrote no complete export")


def _output(command: list[str], folder: Path, progress: Progress) -> tuple[int, list[str]]:
    """Run `command` in `folder`; return its exit code and the last lines that it printed beside its progress."""
    import subprocess

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
            start_new_session=True,  # so that a script that started the real nsys can be stopped with it
        )
    except OSError as error:
        raise _ExportFailedError(f"it does not run: {error.strerror}") from error
    with process:
        try:
            lines = _without_progress(process.stdout or (), progress)
            return process.wait(), list(lines)
        finally:
            if process.poll() is None:
                _kill(process)


def _without_progress(printed: Iterable[str], progress: Progress) -> deque[str]:
    """Call `progress` for each new percentage; return the last of the other lines.

    nsys ends the states of its bar with carriage returns, which count as line ends in text mode.
    """
    lines: deque[str] = deque(maxlen=100)
    latest = -1
    for line in printed:
        found = _PERCENT.search(line)
        if not found:
            lines.append(line.strip())
        elif int(found[1]) > latest:
            latest = int(found[1])
            progress(latest)
    return lines


def _reason(lines: list[str], code: int) -> str:
    if code < 0:
        return f"it was killed by signal {-code}; the machine may have run out of memory"
    for pattern in _REASONS:
        for line in reversed(lines):
            found = pattern.search(line)
            if found:
                return found[1].strip()[:300].rstrip(".")
    return f"it ended with exit code {code} without output"


def _kill(process: subprocess.Popen[str]) -> None:
    import signal

    if sys.platform == "win32":
        process.kill()
    else:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
