"""Real traces: those of the repository, and where they are at hand those that stand beside some checkouts."""

from __future__ import annotations

from pathlib import Path

from sweeps import sweep

_REPOSITORY = Path(__file__).parents[1]
SAMPLES = sorted((_REPOSITORY / "sample_traces").glob("*.sqlite"))
# Of other people's programs.
FOREIGN = sorted((_REPOSITORY.parent / "shared" / "foreign").glob("*.sqlite"))
# Of the samples' programs once more.
MORE = sweep(sorted((_REPOSITORY.parent / "shared" / "traces").glob("*.sqlite")))
REAL = [*SAMPLES, *FOREIGN, *MORE]
