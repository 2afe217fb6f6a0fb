"""What a person types to ask the same again: a report of this trace, in its scope, with steps found the same way."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from nsys_insight.packs.step_options import PARAMS

if TYPE_CHECKING:
    from collections.abc import Mapping


def command(report: str, path: str, scope: Mapping[str, Any], steps: Mapping[str, Any]) -> str:
    """Write the command of a report, which may carry flags of its own (``top --group-by nvtx``), quoted for a shell."""
    name, *own = shlex.split(report)
    return shlex.join(["nsys-insight", name, path, *own, *flags(scope, steps)])


def flags(scope: Mapping[str, Any], steps: Mapping[str, Any]) -> list[str]:
    """Write the parts of a scope, and options about steps, as flags and values."""
    given = {f"--{part.removesuffix('_ns')}": value for part, value in scope.items()}
    given |= {PARAMS[option].flag: value for option, value in steps.items()}
    return [str(word) for pair in given.items() for word in pair]
