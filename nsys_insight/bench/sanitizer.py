"""compute-sanitizer: its four tools run over a command, and what they report, by kernel and line."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight import progress
from nsys_insight.bench import programs
from nsys_insight.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
_KNOWN = re.compile(r"^(?:Error: |Warning: )?(?:Invalid |Uninitialized |Barrier error|Race reported|Program hit )")
_OFFSET, _FILE = r"(?:\+0x[0-9a-f]+)?", r"(?P<file>[^\s:][^:]*?):(?P<line>\d+)"
# Newer tools write the kernel and then the line, older ones an address, the line, and then the kernel.
_PLACES = (
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
_NAMED = 2  # places in a sentence


@dataclass(frozen=True)
class Error:
    """What a tool reports about a line.

    Attributes:
        tool: memcheck, racecheck, initcheck or synccheck.
        kind: In its words: "Invalid __global__ write of size 4 bytes".
        kernel: In which kernel, with its parameters; None where that is not said, as of a call of the host.
        file: The source file's name; None without -lineinfo.
        line: The line in it.
        count: How often it is reported.
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
    def place(self) -> str:
        """Where it is, in words; empty if that is not said."""
        kernel = (self.kernel or "").partition("(")[0]
        line = f" at {self.file}:{self.line}" if self.file else ""
        return line + (f" in {kernel}" if kernel else "")


@dataclass(frozen=True)
class Report:
    """What one tool found.

    Attributes:
        tool: The tool.
        errors: What it reports: those of kernels first, the most frequent first.
        total: How many errors it counts, also those that it did not print; None if it did not come to an end.
        last_words: What was said last, if it did not.
    """

    tool: str
    errors: tuple[Error, ...]
    total: int | None
    last_words: str = ""

    @property
    def clean(self) -> bool:
        """Whether it ran to its end and found no error."""
        return self.total == 0

    @property
    def said(self) -> str:
        """What it found, in a sentence."""
        if self.total is None:
            return f"{self.tool} did not finish: {self.last_words or 'no output'}"
        if not self.total:
            return f"{self.tool}: no errors"
        listed = "; ".join(f"{error.kind}{error.place}" for error in self.errors[:_NAMED])
        more = f"; and {len(self.errors) - _NAMED} more places" if len(self.errors) > _NAMED else ""
        return f"{self.tool}: {self.total} error{'s' * (self.total > 1)}: {listed}{more}"


def run(command: str | Sequence[str], timeout: float | None = None) -> Iterator[Report]:
    """Run the four tools over a command, one after the other.

    Raises:
        ToolError: There is no compute-sanitizer.
    """
    tool = shutil.which("compute-sanitizer") or next(
        (str(path) for path in [Path("/usr/local/cuda/bin/compute-sanitizer")] if path.exists()), None
    )
    if tool is None:
        raise ToolError("compute-sanitizer is not on the PATH", "it comes with the CUDA toolkit, in its bin folder")
    program = ["sh", "-c", command] if isinstance(command, str) else list(command)
    for name in TOOLS:
        with progress.at(f"running {name}"):
            ran = programs.run([tool, "--tool", name, "--print-limit", "1000", *program], timeout)
        found = parse(ran.output + "\n" + ran.errors, name)
        yield replace(found, last_words=ran.last_words) if found.total is None else found


def parse(text: str, tool: str) -> Report:
    """Read what a tool printed among what the program did."""
    lines = [line.lstrip("=").removeprefix(" ") for line in text.splitlines() if line.startswith("=========")]
    counted: Counter[Error] = Counter()
    for head, *details in _blocks(lines):
        warning = head.startswith("Warning: ")
        kind = head.removeprefix("Warning: ").removeprefix("Error: ")
        kind, _, tail = kind.partition(" at ") if kind.startswith(("Race", "Potential")) else (kind, "", "")
        kernel, file, line = _place([f"at {tail}"] if tail else [], details)
        counted[Error(tool, kind.rstrip(" ."), kernel, file, line, is_warning=warning)] += 1
    summaries = [int(found[2] or found[1]) for found in _SUMMARY.finditer("\n".join(lines))]
    # What a kernel did comes before the calls that then failed for it.
    ordered = sorted(counted.items(), key=lambda pair: (pair[0].kernel is None, -pair[1]))
    errors = [replace(error, count=count) for error, count in ordered]
    return Report(tool, tuple(errors), summaries[0] if summaries else None)


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the lines of each report: one that says what it is, and indented ones."""
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
    """Tell a report, which has details below it or begins as known ones do, from headings and summaries."""
    return bool(block) and "SUMMARY:" not in block[0] and (len(block) > 1 or bool(_KNOWN.match(block[0])))


def _place(first: Sequence[str], details: Sequence[str]) -> tuple[str | None, str | None, int | None]:
    """Find the kernel and the line: of an inlined function the kernel around it, which the last device frame names."""
    frames = [line.partition("Device Frame")[2].lstrip(" :") for line in details if line.startswith("Device Frame")]
    told = [line for line in details if re.match(r"(?:and |by )?(?:\w+ access )?at ", line)]
    for text in [*(f"at {frame}" for frame in reversed(frames)), *first, *told]:
        plain = _HAZARDS.sub("", text)
        for pattern in _PLACES:
            if found := pattern.search(plain):
                parts = found.groupdict()
                file, line = parts.get("file"), parts.get("line")
                return parts.get("kernel"), Path(file).name if file else None, int(line) if line else None
    return None, None, None
