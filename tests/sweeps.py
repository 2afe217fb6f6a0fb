"""Sweeps: one check over many cases. Each run takes one case of a kind; `--all` takes the others too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable


def sweep(cases: Iterable[Any]) -> list[Any]:
    """Mark cases of a parametrized test as further ones of a kind."""
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.sweep) for case in cases]
