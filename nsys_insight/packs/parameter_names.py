"""Flags in texts, written as the parameters of functions: group_by, not --group-by."""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from nsys_insight.errors import UsageError
from nsys_insight.ingest.scope import Scope
from nsys_insight.packs import library, rank_sums, step_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# A command for a shell, whose flags stay, or a flag.
_COMMAND_OR_FLAG = re.compile(r"nsys-insight [^;:,]*|(?<![\w-])--([a-z][a-z-]*)(?![\w-])")


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
