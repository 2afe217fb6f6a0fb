"""Sweeps: one check over many cases. Each run takes one case of a kind; `--all` takes the others too."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

# Set before the test modules are imported: making tests only to leave them out takes a third of the collection.
selection = SimpleNamespace(has_sweeps=True)


def sweep(cases: Iterable[Any]) -> list[Any]:
    """Mark cases of a parametrized test as further ones of a kind. A run that leaves them out gets no cases."""
    if not selection.has_sweeps:
        return []
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.sweep) for case in cases]
