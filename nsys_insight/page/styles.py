"""The styles of what pictures show, one word each, to which page.css gives a color; and the texts of the legend.

Work of the GPU has cool colors, causes of idle time warm ones. They can be distinguished without red and green, and
every picture says the same in words.
"""

from __future__ import annotations

_FAMILIES = {
    "gemm": "gemm", "attention": "attention", "comm": "comm", "copy": "copy", "memset": "copy", "graph": "graph",
    "norm": "reduce", "softmax": "reduce", "reduction": "reduce", "sort/topk": "reduce",
    "copy/cast": "move", "gather/scatter": "move", "embedding": "move", "memory": "move",
}  # fmt: skip
_CALLS = {
    "launch": "launch", "graph launch": "launch", "sync": "blocked", "copy": "copy", "memset": "copy",
    "alloc": "allocation", "free": "allocation",
}  # fmt: skip
_PARTS = {"launch": "starved", "sync": "blocked", "gpu": "gemm", "communication": "comm"}

LEGEND = {
    "gemm": "matrix product",
    "attention": "attention",
    "reduce": "norm, softmax, reduction",
    "move": "copy, gather, embedding",
    "kernel": "other kernel",
    "graph": "graph as a whole",
    "comm": "communication",
    "copy": "copy, memset",
    "launch": "launch call",
    "call": "other call",
    "range": "NVTX range",
    "busy": "busy",
    "starved": "idle: starved",
    "blocked": "idle: blocked, or a sync call",
    "allocation": "idle: allocation, or its call",
    "dependency": "idle: dependency",
    "profiler": "idle: profiler",
    "edge": "idle: edge",
    "unknown": "idle: unknown",
}


def of_work(family: str) -> str:
    """The style of what runs on a GPU, by a kernel's family or the kind of another operation."""
    return _FAMILIES.get(family, "kernel")


def of_call(group: str) -> str:
    """The style of a CUDA call, by its group."""
    return _CALLS.get(group, "call")


def of_part(part: str) -> str:
    """The style of a part of the wall: a cause of idle time, or a part of the budget."""
    return _PARTS.get(part, part)
