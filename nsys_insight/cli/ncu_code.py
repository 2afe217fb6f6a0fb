"""What machine code says of kernels, for the report about what ncu measured of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from nsys_insight.text.kernel_names import readable

if TYPE_CHECKING:
    from pathlib import Path

    from nsys_insight.ncu.sections import Code

# Classes that are named in the mix, and sentences of what stands out.
_CLASSES, _SENTENCES = 6, 2


def code_of(file: Path) -> dict[str, Code]:
    """Read machine code: by the readable name of each kernel, its instructions by class and its hottest loop.

    That is the loop with most instructions executed where the file has counts, else the first innermost one.

    Raises:
        TraceError: There is none in the file.
        ToolError: It is a binary file, and no disassembler is here.
    """
    from nsys_insight.kernel_code import sass
    from nsys_insight.kernel_code.reading import Limits
    from nsys_insight.ncu.sections import Code

    loops: dict[str, list[dict[str, object]]] = {}
    for row in sass.answer(file, by="loop", limits=Limits()).dicts():
        loops.setdefault(readable(row["name"]), []).append(row)
    mixes: dict[str, Counter[str]] = {}
    for row in sass.answer(file, by="class", limits=Limits()).dicts():
        if row["part"] == "kernel":
            mixes.setdefault(readable(row["name"]), Counter())[row["class"]] += row["executed"] or row["instructions"]
    found = {}
    for name, rows in loops.items():
        inner = [row for row in rows if "loop" in str(row["part"]) and not str(row["part"]).startswith("waiting")]
        hot = max(inner, key=lambda row: float(str(row["executed"] or 0)), default=rows[0])
        total = sum(mixes[name].values()) or 1
        mix = ", ".join(f"{kind} {100 * count / total:.0f} %" for kind, count in mixes[name].most_common(_CLASSES))
        ratio = hot["compute_per_load_ratio"]
        found[name] = Code(
            mix,
            str(hot["part"]) if hot["part"] != "kernel" else "the code",
            None if ratio is None else float(str(ratio)),
            tuple(str(row["reading"]) for row in rows if row["reading"])[:_SENTENCES],
        )
    return found
