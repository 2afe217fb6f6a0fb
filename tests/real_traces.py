"""Real traces: those of the repository, and those of the shared folder next to it if it exists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sweeps import sweep

_REPOSITORY = Path(__file__).parents[1]
SAMPLES = sorted((_REPOSITORY / "sample_traces").glob("*.sqlite"))
# Traces of other people's programs.
FOREIGN = sorted((_REPOSITORY.parent / "shared" / "foreign").glob("*.sqlite"))
# More traces of the samples' programs.
MORE_OF_SAMPLES = sweep(sorted((_REPOSITORY.parent / "shared" / "traces").glob("*.sqlite")))
# The default selection has the samples, and one foreign trace with tables that the samples lack. It leaves out
# decode_fresh: its loop is that of decode_eager, and its kinds of events are those of churn.
_DEFAULT_FOREIGN = ("mordred.nsys2021_2",)
_LEFT_OUT = "decode_fresh"
SAMPLE_NAMES = [*(path.stem for path in SAMPLES if path.stem != _LEFT_OUT), *sweep([_LEFT_OUT])]
REAL = [
    *(path for path in SAMPLES if path.stem != _LEFT_OUT),
    *(path for path in FOREIGN if path.stem in _DEFAULT_FOREIGN),
    *sweep(path for path in SAMPLES if path.stem == _LEFT_OUT),
    *sweep(path for path in FOREIGN if path.stem not in _DEFAULT_FOREIGN),
    *MORE_OF_SAMPLES,
]


def path_of(case: Any) -> Path:
    """Return the path of an element of `REAL`: a path, or a case that is marked as a sweep."""
    return case if isinstance(case, Path) else case.values[0]
