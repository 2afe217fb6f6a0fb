"""Flags in texts: the command lines that repeat an answer, and flags as parameters of functions: group_by."""

from __future__ import annotations

import re
import shlex
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import UsageError
from nsys_insight.ingest.scope import Scope, write_flags
from nsys_insight.packs import library, rank_sums, step_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# A command for a shell, whose flags stay, or a flag.
_COMMAND_OR_FLAG = re.compile(r"nsys-insight [^;:,]*|(?<![\w-])--([a-z][a-z-]*)(?![\w-])")


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
    step_flags = [word for option, value in steps.items() for word in (step_options.PARAMS[option].flag, str(value))]
    return [*write_flags(scope), *step_flags]


def replace_flags(text: str, names: Mapping[str, str]) -> str:
    """Replace flags by names. `names` has them by the flag without its dashes; other flags stay, such as nsys's."""
    return _COMMAND_OR_FLAG.sub(lambda match: names.get(match[1], match[0]), text)


@cache
def list_parameters() -> dict[str, str]:
    """Return the parameters of all reports, and the options about steps, by the flag without its dashes."""
    params = [rank_sums.PARAM, *step_options.PARAMS.values()]
    params += [param for pack in library.all_packs().values() for param in pack.params.values()]
    return {param.flag.removeprefix("--"): param.name for param in params}


@contextmanager
def naming_parameters() -> Iterator[None]:
    """Name parameters in the errors of the block as Python does."""
    try:
        yield
    except UsageError as error:
        names = list_parameters() | {name.removesuffix("_ns"): name for name in vars(Scope())}
        raise UsageError(replace_flags(error.message, names), replace_flags(error.hint, names)) from None
