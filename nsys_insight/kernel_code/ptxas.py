"""Resources of kernels as compilers print them: `ptxas -v`, `nvcc --resource-usage`, `cuobjdump -res-usage`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.errors import TraceError, UsageError
from nsys_insight.kernel_code.demangle import demangled
from nsys_insight.kernel_code.occupancy import Wanted, capability, fitting
from nsys_insight.paths import query
from nsys_insight.session.answer import Answer, Column, of_rows
from nsys_insight.text.kernel_names import readable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nsys_insight.session.session import Session

_ENTRY = re.compile(r"Compiling entry function '([^']*)' for '([^']*)'")
_PROPERTIES = re.compile(r"Function properties for '?([^\s']+)'?")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(.*)")
_BARRIERS = re.compile(r"used (\d+) barriers")
_SHARED = re.compile(r"((?:\d+\+)?\d+) bytes smem")
_CONSTANT = re.compile(r"(\d+) bytes cmem\[\d+\]")
_STACK = re.compile(r"(\d+) bytes cumulative stack size")
_REMARK = re.compile(r"ptxas (?:warning|info)\s*:\s*(\(C\d+\)|Potential Performance Loss|.*out of range)(.*)")
_OF_FUNCTION = re.compile(r"(?:function|entry) '?([\w$.]+)'?")
_ARCHITECTURE = re.compile(r"arch\s*=\s*(sm_\d+\w?)")
_FUNCTION = re.compile(r"\s*Function\s+([^\s:]+)\s*:")
_RESOURCES = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)(.*)")
_IMPOSSIBLE = re.compile(r"\d{13}")  # no number of registers or bytes
_BANK = re.compile(r"CONSTANT\[\d+\]:(\d+)")
COLUMNS = (
    Column("name", "VARCHAR", "The kernel"),
    Column("architecture", "VARCHAR", "What it was compiled for"),
    Column("registers_per_thread", "BIGINT", "Registers per thread, from the compiler"),
    Column(
        "spill_store_bytes", "BIGINT", "Bytes of spill stores in the code, per thread; NULL where the text has none"
    ),
    Column("spill_load_bytes", "BIGINT", "Bytes of spill loads in the code, per thread"),
    Column("stack_bytes", "BIGINT", "Stack frame per thread"),
    Column("barriers", "BIGINT", "Block barriers that it uses", detail=True),
    Column("static_shared_bytes", "BIGINT", "Static shared memory per block"),
    Column("dynamic_shared_bytes", "BIGINT", "Dynamic shared memory per block: the trace's, else what was given"),
    Column("constant_bytes", "BIGINT", "Constant memory, parameters included", detail=True),
    Column("calls", "BIGINT", "Executions in the trace"),
    Column("total_ns", "BIGINT", "Sum of their durations"),
    Column("trace_registers", "BIGINT", "Registers per thread in the trace, where 16 is the least"),
    Column("block", "BIGINT", "Threads of a block: the trace's, else what was given, else the best size"),
    Column("occupancy_pct", "DOUBLE", "Theoretical occupancy with that block"),
    Column("blocks_per_sm", "BIGINT", "Blocks that an SM holds at once"),
    Column("limited_by", "VARCHAR", "What limits the number of blocks"),
    Column("next_step", "VARCHAR", "What one more block per SM would need", detail=True),
    Column("best_block", "BIGINT", "Largest block of the highest occupancy, as cudaOccupancyMaxPotentialBlockSize"),
    Column("best_pct", "DOUBLE", "Occupancy with this block size"),
    Column("mangled_name", "VARCHAR", "The linker's name", detail=True),
    Column("reading", "VARCHAR", "What stands out"),
)
_NOTHING = (
    "give what these print: nvcc -Xptxas -v, nvcc --resource-usage, ptxas -v, cuobjdump -res-usage; "
    "nvcc -Xptxas -v -c FILE.cu 2>&1 | nsys-insight ptxas"
)
# Fewer registers are not allocated.
_LEAST_REGISTERS = 16


@dataclass
class Usage:
    """What one kernel needs on one architecture; None is what the text does not say.

    `remark` is a warning of ptxas about it, such as that multiply-adds of warp groups are serialized.
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


def usages(lines: Iterable[str]) -> list[Usage]:
    """Read the kernels in the output of a build; of a kernel that is printed twice, the last counts.

    Functions that are no kernels have no registers of their own, and are left out.
    """
    reader = _Reader()
    for line in lines:
        reader.read(line)
    return [usage for usage in reader.found.values() if usage.registers is not None]


class _Reader:
    """State while lines are read: the kernel and the function that the next numbers are of."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], Usage] = {}
        self.kernel: Usage | None = None
        self.function = ""
        self.architecture = ""
        self.remarks: dict[str, str] = {}

    def read(self, line: str) -> None:
        """Read one line."""
        if said := _ENTRY.search(line):
            self._begin(said[1], said[2])
        elif said := _PROPERTIES.search(line):
            self.function = said[1]
        elif said := _ARCHITECTURE.search(line):
            self.architecture = said[1]
        elif said := _RESOURCES.search(line):
            self._resources(said)
        elif said := _FUNCTION.fullmatch(line.rstrip()):
            self._begin(said[1], self.architecture)
        elif said := _REMARK.search(line):
            if about := _OF_FUNCTION.search(said[2]) or _OF_FUNCTION.search(said[0]):
                self._remark(about[1], f"{said[1]}{said[2]}".strip())
        elif self.kernel and not _IMPOSSIBLE.search(line):
            self._numbers(line, self.kernel)

    def _begin(self, name: str, architecture: str) -> None:
        self.kernel = self.found[name, architecture] = Usage(name, architecture, remark=self.remarks.get(name, ""))
        self.function = name

    def _remark(self, name: str, text: str) -> None:
        """Keep a remark: it may be printed before or after the numbers of its kernel."""
        self.remarks[name] = text
        for usage in self.found.values():
            if usage.name == name:
                usage.remark = text

    def _numbers(self, line: str, kernel: Usage) -> None:
        if (said := _FRAME.search(line)) and self.function == kernel.name:
            kernel.stack_bytes, kernel.spill_store_bytes, kernel.spill_load_bytes = map(int, said.groups())
        elif said := _USED.search(line):
            kernel.registers = int(said[1])
            barriers, shared, stack = (pattern.search(said[2]) for pattern in (_BARRIERS, _SHARED, _STACK))
            kernel.barriers = int(barriers[1]) if barriers else None
            kernel.shared_bytes = sum(map(int, shared[1].split("+"))) if shared else 0
            kernel.constant_bytes = sum(map(int, _CONSTANT.findall(said[2]))) or None
            kernel.stack_bytes = int(stack[1]) if stack else kernel.stack_bytes

    def _resources(self, said: re.Match[str]) -> None:
        if self.kernel and not _IMPOSSIBLE.search(said[0]):
            self.kernel.registers, self.kernel.stack_bytes, self.kernel.shared_bytes, _ = map(int, said.groups()[:4])
            self.kernel.constant_bytes = sum(map(int, _BANK.findall(said[5]))) or None


class Assumed(NamedTuple):
    """What to assume of kernels where neither a trace nor the text says it; a block of None is the best one."""

    block: int | None = None
    dynamic_bytes: int = 0
    architecture: str | None = None


def answer(
    lines: Iterable[str], source: str, assumed: Assumed, *, trace: Session | None = None, kernel: str | None = None
) -> Answer:
    """Read what a compiler printed, a row a kernel; with a trace, a row for each way in which it was launched.

    Args:
        lines: The text.
        source: What to call it in an error.
        assumed: What neither it nor a trace says.
        trace: A trace of the program.
        kernel: Only kernels whose name, or the linker's, contains this.

    Raises:
        TraceError: There is no kernel in the text.
        UsageError: None is called `kernel`.
    """
    found = [(usage, demangled(usage.name)) for usage in usages(lines)]
    if not found:
        raise TraceError(f"{source} has no resource usage of kernels", _NOTHING)
    names = [name for _, name in found]
    if kernel is not None:
        found = [(usage, name) for usage, name in found if kernel.lower() in name.lower() or kernel in usage.name]
        if not found:
            raise UsageError(f"no kernel is named {kernel!r}", f"there are: {', '.join(map(readable, names[:8]))}")
    launched = trace.dicts(query("internal/kernel_code/launches")) if trace else []
    cases = []
    for usage, name in found:
        usage.architecture = usage.architecture or assumed.architecture or ""
        mine = [launch for launch in launched if _is_of(launch, usage, name, names)]
        cases += [Case(usage, name, launch) for launch in mine] or [Case(usage, name, _unlaunched(assumed))]
    wanted = [
        Wanted(
            one.launch["block"], one.usage.registers, (one.usage.shared_bytes or 0) + one.launch["dynamic_shared_bytes"]
        )
        for one in cases
    ]
    fits = {(row["number"], row["compute_capability"]): row for row in fitting(wanted)}
    rows = [one.row(fits.get((number, one.capability), {})) for number, one in enumerate(cases)]
    rows.sort(key=lambda row: -(row["total_ns"] or 0))
    return of_rows(
        COLUMNS, [[row[column.name] for column in COLUMNS] for row in rows], report="ptxas",
        title="Resources of kernels", notes=tuple(_notes(cases, assumed, is_traced=trace is not None)),
    )  # fmt: skip


@dataclass
class Case:
    """A kernel as it was compiled, and one way in which it was launched, or might be."""

    usage: Usage
    name: str
    launch: dict[str, Any]

    @property
    def capability(self) -> str:
        """The compute capability that it was compiled for, else that of the GPU; "" if neither is known."""
        return _capability(self.usage.architecture) or self.launch.get("compute_capability") or ""

    def row(self, fit: dict[str, Any]) -> dict[str, Any]:
        """Its row, with what fits on an SM."""
        usage, launch = self.usage, self.launch
        return {column.name: fit.get(column.name, launch.get(column.name)) for column in COLUMNS} | {
            "name": self.name,
            "architecture": usage.architecture or None,
            "registers_per_thread": usage.registers,
            "spill_store_bytes": usage.spill_store_bytes,
            "spill_load_bytes": usage.spill_load_bytes,
            "stack_bytes": usage.stack_bytes,
            "barriers": usage.barriers,
            "static_shared_bytes": usage.shared_bytes,
            "constant_bytes": usage.constant_bytes,
            "trace_registers": launch.get("registers"),
            "mangled_name": usage.name,
            "reading": "; ".join(self.sentences(fit)) or None,
        }

    def sentences(self, fit: dict[str, Any]) -> list[str]:
        """What stands out: spills, a stack, registers that keep a block out, a trace of another build."""
        usage, said = self.usage, []
        stores, loads = usage.spill_store_bytes or 0, usage.spill_load_bytes or 0
        if stores + loads:
            what = f"spill stores of {stores} bytes and loads of {loads}"
            said.append(f"{what}: keep fewer values live in a thread, or allow it more registers")
        elif usage.stack_bytes:
            spilled = "spilled registers, " if usage.spill_store_bytes is None else ""
            said.append(f"a stack frame of {usage.stack_bytes} bytes: {spilled}an array indexed at run time, or a call")
        # A kernel that spills needs more registers; a grid that fits on the GPU at once gains nothing.
        has_waves = (self.launch.get("waves_per_sm") or 2) > 1
        if fit.get("next_registers") and not fit["next_needs_shared"] and not stores + loads and has_waves:
            how = f"-maxrregcount, or __launch_bounds__({fit['block']}, {fit['next_blocks']})"
            gain = f"{fit['next_pct']:.0f} % of its warps for {fit['occupancy_pct']:.0f} %"
            said.append(
                f"with {fit['next_registers']} registers ({how}) an SM would hold {fit['next_blocks']} blocks, {gain},"
                " if that spills nothing"
            )
        traced = self.launch.get("registers")
        if traced is not None and traced != max(usage.registers or 0, _LEAST_REGISTERS):
            said.append(f"the trace ran it with {traced} registers: a different build")
        return [*said, *([usage.remark] if usage.remark else [])]


def _unlaunched(assumed: Assumed) -> dict[str, Any]:
    return {"block": assumed.block, "dynamic_shared_bytes": assumed.dynamic_bytes}


def _notes(cases: list[Case], assumed: Assumed, *, is_traced: bool) -> Iterator[str]:
    if is_traced:
        launched = {one.usage.name for one in cases if "calls" in one.launch}
        yield f"the trace launched {len(launched)} of {len({one.usage.name for one in cases})} kernels"
    elif assumed.block is None:
        yield "the block size is unknown: occupancy is for the best one; give --block or --trace"
    if not all(one.capability for one in cases):
        yield "occupancy needs an architecture of the catalog (nsys-insight peaks --arch all): name it with --arch"


def _is_of(launch: dict[str, Any], usage: Usage, name: str, names: list[str]) -> bool:
    """Tell whether a launch is of a kernel, on its architecture: by the linker's name, else by one that is unique."""
    if launch["compute_capability"] not in (None, _capability(usage.architecture) or launch["compute_capability"]):
        return False
    if launch["mangled_name"]:
        return bool(launch["mangled_name"] == usage.name)
    base = _base_name(name)
    return (
        _base_name(launch["name"] or "") == base and len({other for other in names if _base_name(other) == base}) == 1
    )


def _base_name(name: str) -> str:
    return readable(name).partition("<")[0].partition("(")[0].rpartition("::")[2]


def _capability(architecture: str) -> str:
    try:
        return capability(architecture)
    except UsageError:
        return ""
