"""The styles of the pictures, one word each, and the texts of the legend. page.css gives each style a color.

GPU work has cool colors, causes of idle time have warm ones. They can be distinguished without red and green, and
every picture shows the same information in words.
"""

from __future__ import annotations

_STYLE_OF_FAMILY = {
    "gemm": "gemm", "attention": "attention", "comm": "comm", "copy": "copy", "memset": "copy", "graph": "graph",
    "norm": "reduce", "softmax": "reduce", "reduction": "reduce", "sort/topk": "reduce",
    "copy/cast": "move", "gather/scatter": "move", "embedding": "move", "memory": "move",
}  # fmt: skip
_STYLE_OF_CALL_GROUP = {
    "launch": "launch", "graph launch": "launch", "sync": "blocked", "copy": "copy", "memset": "copy",
    "alloc": "allocation", "free": "allocation",
}  # fmt: skip
_STYLE_OF_BUDGET_ROW = {
    "launch": "starved", "sync": "blocked", "start-up and end": "edge", "gpu": "gemm", "communication": "comm",
}  # fmt: skip

LEGEND = {
    "gemm": "matrix product",
    "attention": "attention",
    "reduce": "norm, softmax, reduction",
    "move": "copy, gather, embedding",
    "kernel": "other kernel",
    "graph": "graph as a whole",
    "comm": "communication",
    "copy": "copy, memset, or idle for a copy",
    "launch": "launch call",
    "call": "other call",
    "range": "NVTX range",
    "busy": "busy",
    "starved": "idle: launch",
    "blocked": "idle: sync, or a sync call",
    "allocation": "idle: allocation, or its call",
    "dependency": "idle: dependency",
    "profiler": "idle: profiler",
    "edge": "idle: start-up and end",
    "unknown": "idle: unknown",
    "metric": "sampled metric, 0 to 100%",
}


def style_work(family: str) -> str:
    """Return the style of GPU work, by a kernel's family or the kind of another operation."""
    return _STYLE_OF_FAMILY.get(family, "kernel")


def style_call(group: str) -> str:
    """Return the style of a CUDA call, by its group."""
    return _STYLE_OF_CALL_GROUP.get(group, "call")


def style_budget_row(cause: str) -> str:
    """Return the style of a part of the wall time: a cause of idle time, or a row of the budget."""
    return _STYLE_OF_BUDGET_ROW.get(cause, cause)
