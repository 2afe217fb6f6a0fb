"""Real traces: those of the repository, and where they are at hand those that stand beside some checkouts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sweeps import sweep

_REPOSITORY = Path(__file__).parents[1]
SAMPLES = sorted((_REPOSITORY / "sample_traces").glob("*.sqlite"))
# Of other people's programs.
FOREIGN = sorted((_REPOSITORY.parent / "shared" / "foreign").glob("*.sqlite"))
# Of the samples' programs once more.
MORE = sweep(sorted((_REPOSITORY.parent / "shared" / "traces").glob("*.sqlite")))
# By default the samples, and one foreign trace with what none of them has.
_CHOSEN = ("mordred.nsys2021_2",)
REAL = [
    *SAMPLES,
    *(path for path in FOREIGN if path.stem in _CHOSEN),
    *sweep(path for path in FOREIGN if path.stem not in _CHOSEN),
    *MORE,
]


def path_of(case: Any) -> Path:
    """Return the path of a trace of `REAL`, some of which are marked as a sweep."""
    return case if isinstance(case, Path) else case.values[0]
