"""Run the four tools of compute-sanitizer on a command, and read their reports by kernel and line."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight import programs, progress
from nsys_insight.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
_REPORT_START = re.compile(
    r"^(?:Error: |Warning: )?(?:Invalid |Uninitialized |Barrier error|Race reported|Program hit )"
)
_OFFSET, _FILE = r"(?:\+0x[0-9a-f]+)?", r"(?P<file>[^\s:][^:]*?):(?P<line>\d+)"
# Newer tools print the kernel and then the line. Older tools print an address, the line and then the kernel.
_LOCATION_PATTERNS = (
    re.compile(rf"\bat 0x[0-9a-f]+ in {_FILE}:(?P<kernel>.+)$"),
    re.compile(rf"\bat 0x[0-9a-f]+ in {_FILE}$"),
    re.compile(r"\bat 0x[0-9a-f]+ in (?P<kernel>.+)$"),
    re.compile(rf"(?:\bat|Frame:) ?(?P<kernel>.+?){_OFFSET} in {_FILE}$"),
    re.compile(r"(?:\bat|Frame:) ?(?P<kernel>.+?)(?:\+0x[0-9a-f]+)$"),
)
_HAZARDS = re.compile(r"\s*\[(\d+) hazards?\]$")
_SUMMARY = re.compile(
    r"^(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:errors?|hazards? displayed \((\d+) errors?)", re.MULTILINE
)
_MAX_LISTED = 2  # errors in a sentence


@dataclass(frozen=True)
class SanitizerError:
    """An error at one source line, as a tool reports it.

    Attributes:
        tool: memcheck, racecheck, initcheck or synccheck.
        kind: Kind of error in the tool's words: "Invalid __global__ write of size 4 bytes".
        kernel: Kernel with its parameters; None if it is unknown, as for an API call of the host.
        file: Name of the source file; None without -lineinfo.
        line: Line number in the file; None without -lineinfo.
        count: Number of reports.
        is_warning: Whether the tool calls it a warning.
    """

    tool: str
    kind: str
    kernel: str | None
    file: str | None
    line: int | None
    count: int = 1
    is_warning: bool = False

    @property
    def location(self) -> str:
        """Return the location in words; empty if it is unknown."""
        kernel = (self.kernel or "").partition("(")[0]
        line = f" at {self.file}:{self.line}" if self.file else ""
        return line + (f" in {kernel}" if kernel else "")


@dataclass(frozen=True)
class Report:
    """The report of one tool.

    Attributes:
        tool: The tool.
        errors: Its errors: those in kernels first, then by frequency.
        total: Number of errors that it counted, including those that it did not print; None if it did not finish.
        last_lines: Last lines of its output, if it did not finish.
    """

    tool: str
    errors: tuple[SanitizerError, ...]
    total: int | None
    last_lines: str = ""

    @property
    def is_clean(self) -> bool:
        """Return whether the tool finished and found no error."""
        return self.total == 0

    @property
    def message(self) -> str:
        """Return the finding in a sentence."""
        if self.total is None:
            return f"{self.tool} did not finish: {self.last_lines or 'no output'}"
        if not self.total:
            return f"{self.tool}: no errors"
        listed_errors = "; ".join(f"{error.kind}{error.location}" for error in self.errors[:_MAX_LISTED])
        remainder = f"; and {len(self.errors) - _MAX_LISTED} more places" if len(self.errors) > _MAX_LISTED else ""
        return f"{self.tool}: {self.total} error{'s' * (self.total > 1)}: {listed_errors}{remainder}"


def run(command: str | Sequence[str], timeout: float | None = None) -> Iterator[Report]:
    """Run the four tools on a command, one after the other.

    Raises:
        ToolError: compute-sanitizer is not installed.
    """
    tool = programs.find_tool("compute-sanitizer")
    if tool is None:
        raise ToolError("compute-sanitizer is not on the PATH", "it comes with the CUDA toolkit, in its bin folder")
    program = ["sh", "-c", command] if isinstance(command, str) else list(command)
    for name in TOOLS:
        with progress.show_task(f"running {name}"):
            command_result = programs.run([str(tool), "--tool", name, "--print-limit", "1000", *program], timeout)
        report = parse(command_result.output + "\n" + command_result.errors, name)
        yield replace(report, last_lines=command_result.last_lines) if report.total is None else report


def parse(text: str, tool: str) -> Report:
    """Parse the report of a tool in the output of the program."""
    lines = [line.lstrip("=").removeprefix(" ") for line in text.splitlines() if line.startswith("=========")]
    error_counts: Counter[SanitizerError] = Counter()
    for head, *details in _split_reports(lines):
        is_warning = head.startswith("Warning: ")
        kind = head.removeprefix("Warning: ").removeprefix("Error: ")
        kind, _, tail = kind.partition(" at ") if kind.startswith(("Race", "Potential")) else (kind, "", "")
        kernel, file, line = _find_location([f"at {tail}"] if tail else [], details)
        error_counts[SanitizerError(tool, kind.rstrip(" ."), kernel, file, line, is_warning=is_warning)] += 1
    summaries = [int(match[2] or match[1]) for match in _SUMMARY.finditer("\n".join(lines))]
    # An error in a kernel comes before the API calls that failed because of it.
    sorted_errors = sorted(error_counts.items(), key=lambda pair: (pair[0].kernel is None, -pair[1]))
    errors = [replace(error, count=count) for error, count in sorted_errors]
    return Report(tool, tuple(errors), summaries[0] if summaries else None)


def _split_reports(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the lines of each report: a headline, and indented details."""
    block: list[str] = []
    for line in lines:
        if line.startswith(" ") and block:
            block.append(line.strip())
            continue
        if _is_report(block):
            yield block
        block = [line]
    if _is_report(block):
        yield block


def _is_report(block: Sequence[str]) -> bool:
    """Return whether lines are a report: they have details or a known start. Headings and summaries do not."""
    return bool(block) and "SUMMARY:" not in block[0] and (len(block) > 1 or bool(_REPORT_START.match(block[0])))


def _find_location(first: Sequence[str], details: Sequence[str]) -> tuple[str | None, str | None, int | None]:
    """Find kernel, file and line. For an inlined function, the last device frame names the enclosing kernel."""
    frames = [line.partition("Device Frame")[2].lstrip(" :") for line in details if line.startswith("Device Frame")]
    access_lines = [line for line in details if re.match(r"(?:and |by )?(?:\w+ access )?at ", line)]
    for text in [*(f"at {frame}" for frame in reversed(frames)), *first, *access_lines]:
        text_without_hazards = _HAZARDS.sub("", text)
        for pattern in _LOCATION_PATTERNS:
            if match := pattern.search(text_without_hazards):
                groups = match.groupdict()
                file, line = groups.get("file"), groups.get("line")
                return groups.get("kernel"), Path(file).name if file else None, int(line) if line else None
    return None, None, None
