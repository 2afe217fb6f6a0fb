"""Read the resource usage of kernels from compiler output.

It is what `ptxas -v`, `nvcc --resource-usage`, `nvlink -v` or `cuobjdump -res-usage` print.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.errors import TraceError, UsageError
from nsys_insight.kernel_code.demangle import demangle
from nsys_insight.kernel_code.occupancy import Requirements, compute_occupancy, parse_capability
from nsys_insight.paths import read_query
from nsys_insight.session.answer import Answer, build_answer, read_columns
from nsys_insight.text.kernel_names import make_readable, remove_file_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nsys_insight.session.session import Session

_ENTRY = re.compile(r"Compiling entry function '([^']*)' for '([^']*)'")
_PROPERTIES = re.compile(r"Function properties for '?([^\s']+)'?")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"[Uu]sed (\d+) registers(.*)")
# Printed by nvlink, with the target if there are several, and by nvJitLink, which prints no name of a program.
_LINKED = re.compile(r"(?:nvlink |^)info\s*:\s*Function properties for '([^']+)':(?:\s*\(target:\s*(sm_\w+)\))?")
_UNKNOWN_STACK = re.compile(r"Stack size for entry function '([^']+)' cannot be statically determined")
_BARRIERS = re.compile(r"used (\d+) barriers")
_SHARED = re.compile(r"((?:\d+\+)?\d+) bytes smem")
_CONSTANT = re.compile(r"(\d+) bytes cmem\[\d+\]")
_STACK = re.compile(r"(\d+) (?:bytes cumulative stack size|stack\b)")
_REMARK = re.compile(r"ptxas (?:warning|info)\s*:\s*(\(C\d+\)|Potential Performance Loss|.*out of range)(.*)")
_FUNCTION_IN_REMARK = re.compile(r"(?:function|entry) '?([\w$.]+)'?")
_ARCHITECTURE = re.compile(r"arch\s*=\s*(sm_\d+\w?)")
_FUNCTION = re.compile(r"\s*Function\s+([^\s:]+)\s*:")
_RESOURCES = re.compile(r"REG:(\d+) STACK:(\d+|UNKNOWN) SHARED:(\d+) LOCAL:(\d+)(.*)")
_IMPOSSIBLE = re.compile(r"\d{13}")  # too large for a number of registers or bytes
_BANK = re.compile(r"CONSTANT\[\d+\]:(\d+)")
COLUMNS = read_columns("kernel_code/ptxas")
_INPUTS = (
    "give what these print: nvcc -Xptxas -v, nvcc --resource-usage, ptxas -v, cuobjdump -res-usage; "
    "nvcc -Xptxas -v -c FILE.cu 2>&1 | nsys-insight ptxas"
)
# Fewest registers that are allocated to a thread.
_MIN_ALLOCATED_REGISTERS = 16
# From sm_90 on, shared memory that is reserved in each block; after linking, it is part of a size that is not 0.
_RESERVED_SHARED_BYTES = 1024
_FIRST_RESERVING_CAPABILITY = (9, 0)


@dataclass
class Usage:
    """The resource usage of one kernel on one architecture. Values that are not in the text stay None.

    `remark` is a warning of ptxas about the kernel: for example, multiply-adds of warp groups are serialized.
    `is_stack_unknown`: the compiler says that the stack depends on the run. `is_linked`: the numbers are those after
    linking, as nvlink and cuobjdump print them.
    """

    name: str
    architecture: str
    registers: int | None = None
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None
    stack_bytes: int | None = None
    barriers: int | None = None
    shared_bytes: int | None = None
    constant_bytes: int | None = None
    remark: str = ""
    is_stack_unknown: bool = False
    is_linked: bool = False

    def compute_static_shared(self, capability: str) -> int | None:
        """Compute the static shared memory, in bytes, without what is reserved in each block of this architecture."""
        has_reserved = (
            self.is_linked and capability and tuple(map(int, capability.split("."))) >= _FIRST_RESERVING_CAPABILITY
        )
        if self.shared_bytes and has_reserved:
            return max(self.shared_bytes - _RESERVED_SHARED_BYTES, 0)
        return self.shared_bytes


def read_usages(lines: Iterable[str], remarks: list[str] | None = None) -> list[Usage]:
    """Read the kernels in the output of a build. If a kernel is printed twice, the last output counts.

    Functions that are not kernels have no registers of their own (cuobjdump prints 0), and are left out. Warnings that
    name no kernel are appended to `remarks`.
    """
    reader = _Reader([] if remarks is None else remarks)
    for line in lines:
        reader.read(line)
    usages = [usage for usage in reader.usages.values() if usage.registers]
    for usage in usages:
        if usage.name in reader.unknown_stacks:
            usage.stack_bytes, usage.is_stack_unknown = None, True
    return usages


class _Reader:
    """The state of the reader between lines: the kernel and the function that the next numbers belong to."""

    def __init__(self, general_remarks: list[str]) -> None:
        self.general_remarks = general_remarks
        self.usages: dict[tuple[str, str], Usage] = {}
        self.kernel: Usage | None = None
        self.function = ""
        self.architecture = ""
        self.remarks: dict[str, str] = {}
        self.unknown_stacks: set[str] = set()

    def read(self, line: str) -> None:
        """Read one line."""
        if self._read_name(line):
            return
        if match := _ARCHITECTURE.search(line):
            self.architecture = match[1]
        elif match := _RESOURCES.search(line):
            self._read_resources(match)
        elif match := _UNKNOWN_STACK.search(line):
            self.unknown_stacks.add(match[1])
        elif match := _REMARK.search(line):
            text = f"{match[1]}{match[2]}".strip()
            if function_match := _FUNCTION_IN_REMARK.search(match[2]) or _FUNCTION_IN_REMARK.search(match[0]):
                self._store_remark(function_match[1], text)
            elif text not in self.general_remarks:
                self.general_remarks.append(text)
        elif self.kernel and not _IMPOSSIBLE.search(line):
            self._read_numbers(line, self.kernel)

    def _read_name(self, line: str) -> bool:
        """Read a line that names the kernel or function of the next numbers. Return whether it is one."""
        if match := _ENTRY.search(line):
            self._start_kernel(match[1], match[2])
        elif match := _LINKED.search(line):
            self._continue_kernel(match[1], match[2])
        elif match := _PROPERTIES.search(line):
            self.function = match[1]
        elif match := _FUNCTION.fullmatch(line.rstrip()):
            self._start_kernel(match[1], self.architecture)
        return match is not None

    def _start_kernel(self, name: str, architecture: str) -> None:
        self.kernel = self.usages[name, architecture] = Usage(name, architecture, remark=self.remarks.get(name, ""))
        self.function = name

    def _continue_kernel(self, name: str, architecture: str | None) -> None:
        """Continue with the numbers after linking, which count the functions of other files that a kernel calls."""
        if architecture is None:
            compiled = [usage.architecture for usage in self.usages.values() if usage.name == name]
            architecture = compiled[0] if len(compiled) == 1 else ""
        self.kernel = self.usages.setdefault((name, architecture), Usage(name, architecture))
        self.kernel.is_linked, self.function = True, name

    def _store_remark(self, name: str, text: str) -> None:
        """Store a remark. It may be printed before or after the numbers of its kernel."""
        self.remarks[name] = text
        for usage in self.usages.values():
            if usage.name == name:
                usage.remark = text

    def _read_numbers(self, line: str, kernel: Usage) -> None:
        if (match := _FRAME.search(line)) and self.function == kernel.name:
            kernel.stack_bytes, kernel.spill_store_bytes, kernel.spill_load_bytes = map(int, match.groups())
        elif match := _REGISTERS.search(line):
            kernel.registers = int(match[1])
            barriers, shared, stack = (pattern.search(match[2]) for pattern in (_BARRIERS, _SHARED, _STACK))
            kernel.barriers = int(barriers[1]) if barriers else None
            kernel.shared_bytes = sum(map(int, shared[1].split("+"))) if shared else 0
            kernel.constant_bytes = sum(map(int, _CONSTANT.findall(match[2]))) or None
            kernel.stack_bytes = int(stack[1]) if stack else kernel.stack_bytes

    def _read_resources(self, match: re.Match[str]) -> None:
        if self.kernel and not _IMPOSSIBLE.search(match[0]):
            registers, stack, shared = match.groups()[:3]
            self.kernel.registers, self.kernel.shared_bytes, self.kernel.is_linked = int(registers), int(shared), True
            if stack.isdigit():
                self.kernel.stack_bytes = int(stack)
            else:
                self.unknown_stacks.add(self.kernel.name)
            self.kernel.constant_bytes = sum(map(int, _BANK.findall(match[5]))) or None


class Assumptions(NamedTuple):
    """What to assume if neither a trace nor the text has a value. A block of None means the best block size."""

    block: int | None = None
    dynamic_bytes: int = 0
    architecture: str | None = None


def answer(
    lines: Iterable[str],
    source: str,
    assumptions: Assumptions,
    *,
    trace: Session | None = None,
    kernel: str | None = None,
) -> Answer:
    """Read compiler output, one row per kernel; with a trace, one row per launch configuration of a kernel.

    Args:
        lines: The text.
        source: The name of the text in an error.
        assumptions: Values for what neither the text nor a trace has.
        trace: A trace of the program.
        kernel: Show only kernels whose name, or linker's name, contains this text.

    Raises:
        TraceError: There is no kernel in the text.
        UsageError: No kernel has such a name.
    """
    remarks: list[str] = []
    named_usages = [(usage, demangle(usage.name)) for usage in read_usages(lines, remarks)]
    if not named_usages:
        raise TraceError(f"{source} has no resource usage of kernels", _INPUTS)
    names = [name for _, name in named_usages]
    mangled_names = {usage.name for usage, _ in named_usages}
    if kernel is not None:
        named_usages = [
            (usage, name) for usage, name in named_usages if kernel.lower() in name.lower() or kernel in usage.name
        ]
        if not named_usages:
            raise UsageError(f"no kernel is named {kernel!r}", f"there are: {', '.join(map(make_readable, names[:8]))}")
    launches = trace.dicts(read_query("internal/kernel_code/launches")) if trace else []
    cases = []
    for usage, name in named_usages:
        usage.architecture = usage.architecture or assumptions.architecture or ""
        kernel_launches = [launch for launch in launches if _is_launch_of(launch, usage, name, names, mangled_names)]
        cases += [Case(usage, name, launch) for launch in kernel_launches] or [
            Case(usage, name, {"block": assumptions.block, "dynamic_shared_bytes": assumptions.dynamic_bytes})
        ]
    requirements = [
        Requirements(
            case.launch["block"],
            case.usage.registers,
            (case.static_shared_bytes or 0) + case.launch["dynamic_shared_bytes"],
        )
        for case in cases
    ]
    fits = {(row["number"], row["compute_capability"]): row for row in compute_occupancy(requirements)}
    rows = [case.build_row(fits.get((number, case.capability), {})) for number, case in enumerate(cases)]
    rows.sort(key=lambda row: -(row["total_ns"] or 0))
    notes = [
        *(f"ptxas does not name the kernel of this: {remark}" for remark in remarks),
        *_list_notes(cases, assumptions, is_traced=trace is not None),
    ]
    return build_answer(
        COLUMNS, [[row[column.name] for column in COLUMNS] for row in rows], report="ptxas",
        title="Resources of kernels", notes=tuple(notes),
    )  # fmt: skip


@dataclass
class Case:
    """A compiled kernel with one launch configuration, from the trace or assumed."""

    usage: Usage
    name: str
    launch: dict[str, Any]

    @property
    def capability(self) -> str:
        """Return the compute capability that it was compiled for, else that of the GPU; "" if both are unknown."""
        return _find_capability(self.usage.architecture) or self.launch.get("compute_capability") or ""

    @property
    def static_shared_bytes(self) -> int | None:
        """Return the static shared memory that the kernel declares."""
        return self.usage.compute_static_shared(self.capability)

    def build_row(self, fit: dict[str, Any]) -> dict[str, Any]:
        """Build the row of the answer; `fit` is the row of `compute_occupancy`."""
        usage, launch = self.usage, self.launch
        return {column.name: fit.get(column.name, launch.get(column.name)) for column in COLUMNS} | {
            "name": self.name,
            "architecture": usage.architecture or None,
            "registers_per_thread": usage.registers,
            "spill_store_bytes": usage.spill_store_bytes,
            "spill_load_bytes": usage.spill_load_bytes,
            "stack_bytes": usage.stack_bytes,
            "barriers": usage.barriers,
            "static_shared_bytes": self.static_shared_bytes,
            "constant_bytes": usage.constant_bytes,
            "trace_registers": launch.get("registers"),
            "mangled_name": usage.name,
            "reading": "; ".join(self.describe(fit)) or None,
        }

    def describe(self, fit: dict[str, Any]) -> list[str]:
        """Describe what stands out: spills, a stack, registers that limit blocks, a trace of another build."""
        usage, sentences = self.usage, []
        stores, loads = usage.spill_store_bytes or 0, usage.spill_load_bytes or 0
        if stores + loads:
            spills = f"spill stores of {stores} bytes and loads of {loads}"
            sentences.append(f"{spills}: keep fewer values live in a thread, or allow it more registers")
        elif usage.stack_bytes:
            # Without numbers on spills, the stack may also hold spilled registers.
            cause = "spilled registers, " if usage.spill_store_bytes is None else ""
            frame = f"a stack frame of {usage.stack_bytes} bytes"
            sentences.append(f"{frame}: {cause}an array indexed at run time, or a call")
        elif usage.is_stack_unknown:
            sentences.append("the size of its stack depends on the run: recursion, or a call through a pointer")
        # Fewer registers do not help if the kernel spills, or if the full grid already fits on the GPU at once.
        has_waves = (self.launch.get("waves_per_sm") or 2) > 1
        if fit.get("next_registers") and not fit["next_needs_shared"] and not stores + loads and has_waves:
            # ptxas ignores -maxrregcount for a kernel with any launch bounds.
            bounds = f"__launch_bounds__({fit['block']}, {fit['next_blocks']})"
            option = f"{bounds}, or -maxrregcount if it has no launch bounds"
            gain = f"{fit['next_pct']:.0f}% of its warps for {fit['occupancy_pct']:.0f}%"
            sentences.append(
                f"with {fit['next_registers']} registers ({option}) an SM would hold {fit['next_blocks']} blocks,"
                f" {gain}, if that spills nothing"
            )
        traced = self.launch.get("registers")
        if traced is not None and traced != max(usage.registers or 0, _MIN_ALLOCATED_REGISTERS):
            # ptxas does not know the functions of other files that a kernel calls. The linker adds their registers.
            calls = ", or it calls functions of other files: nvcc -Xnvlink -v prints the registers after linking"
            cause = calls if traced > (usage.registers or 0) else ""
            sentences.append(f"the trace ran it with {traced} registers: a different build{cause}")
        return [*sentences, *([usage.remark] if usage.remark else [])]


def _list_notes(cases: list[Case], assumptions: Assumptions, *, is_traced: bool) -> Iterator[str]:
    if is_traced:
        launched_names = {case.usage.name for case in cases if "calls" in case.launch}
        yield f"the trace launched {len(launched_names)} of {len({case.usage.name for case in cases})} kernels"
    elif assumptions.block is None:
        yield "the block size is unknown: occupancy is for the best one; give --block or --trace"
    if not all(case.capability for case in cases):
        yield "occupancy needs an architecture of the catalog (nsys-insight peaks --arch all): name it with --arch"


def _is_launch_of(launch: dict[str, Any], usage: Usage, name: str, names: list[str], mangled_names: set[str]) -> bool:
    """Return whether a launch belongs to a kernel of this architecture.

    The linker's names must agree, or else agree without the hash of the source file's path. A launch without such a
    name must agree in the base name, which must be unique.
    """
    if launch["compute_capability"] not in (None, _find_capability(usage.architecture) or launch["compute_capability"]):
        return False
    if mangled_name := launch["mangled_name"]:
        if mangled_name in mangled_names:
            return bool(mangled_name == usage.name)
        same_names = {other for other in mangled_names if remove_file_hash(other) == remove_file_hash(mangled_name)}
        return same_names == {usage.name}
    base = _get_base_name(name)
    same_names = {other for other in names if _get_base_name(other) == base}
    return _get_base_name(launch["name"] or "") == base and len(same_names) == 1


def _get_base_name(name: str) -> str:
    return make_readable(name).partition("<")[0].partition("(")[0].rpartition("::")[2]


def _find_capability(architecture: str) -> str:
    try:
        return parse_capability(architecture)
    except UsageError:
        return ""
