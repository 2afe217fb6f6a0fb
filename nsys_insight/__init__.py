"""SQL over NVIDIA Nsight Systems traces.

import nsys_insight

trace = nsys_insight.open("trace.nsys-rep")
trace.top()                                   # a polars frame
trace.run("gaps", min_gap_ns=5000)
trace.scope(nvtx="decode_step").per_token()
trace.sql("SELECT name, count(*) FROM kernels GROUP BY ALL ORDER BY 2 DESC")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_insight.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsys_insight.trace import Trace

__all__ = ["__version__", "open"]


def open(path: str | Path | Sequence[str | Path], **options: Any) -> Trace:  # noqa: A001 - nsys_insight.open reads as gzip.open does
    """Open a trace, or several of one run: a `.nsys-rep`, its SQLite export, or a parquetdir.

    Takes the `options` of `Trace`.
    """
    from nsys_insight.trace import Trace

    return Trace(path, **options)
