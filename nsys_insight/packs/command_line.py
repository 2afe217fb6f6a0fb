"""What a person types to ask the same again: a report of this trace, in its scope, with steps found the same way."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from nsys_insight.ingest.scope import words
from nsys_insight.packs.step_options import PARAMS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def command(report: str, path: str | Sequence[str], scope: Mapping[str, Any], steps: Mapping[str, Any]) -> str:
    """Write the command of a report, which may carry flags of its own (``top --group-by nvtx``), quoted for a shell.

    Args:
        report: The report, with its flags.
        path: The trace, or several.
        scope: The parts of the scope.
        steps: Options about steps.
    """
    name, *own = shlex.split(report)
    paths = [path] if isinstance(path, str) else path
    return shlex.join(["nsys-insight", name, *paths, *own, *flags(scope, steps)])


def flags(scope: Mapping[str, Any], steps: Mapping[str, Any]) -> list[str]:
    """Write the parts of a scope, and options about steps, as flags and values."""
    of_steps = [word for option, value in steps.items() for word in (PARAMS[option].flag, str(value))]
    return [*words(scope), *of_steps]
