"""Command lines that repeat an answer: a report of the same trace, in its scope, with the same options for steps."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from nsys_insight.ingest.scope import write_flags
from nsys_insight.packs.step_options import PARAMS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def write_command(report: str, path: str | Sequence[str], scope: Mapping[str, Any], steps: Mapping[str, Any]) -> str:
    """Write the command of a report, quoted for a shell.

    Args:
        report: The report, which may have flags of its own: ``top --group-by nvtx``.
        path: The trace, or several.
        scope: The filters of the scope.
        steps: Options about steps.
    """
    name, *own_flags = shlex.split(report)
    paths = [path] if isinstance(path, str) else path
    return shlex.join(["nsys-insight", name, *paths, *own_flags, *format_flags(scope, steps)])


def format_flags(scope: Mapping[str, Any], steps: Mapping[str, Any]) -> list[str]:
    """Write the filters of a scope and options about steps as flags and values."""
    step_flags = [word for option, value in steps.items() for word in (PARAMS[option].flag, str(value))]
    return [*write_flags(scope), *step_flags]
