"""The command ``per-token``: its pack, or the same budget with one column a phase."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_insight.cli.flags import Flags, flag, flag_of, traces_argument, with_flags
from nsys_insight.cli.run import answer_pack, help_of
from nsys_insight.errors import UsageError
from nsys_insight.packs import library, step_options

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def per_token_command() -> Callable[..., None]:
    """Make the command ``per-token``: what a step costs, or with ``--by-phase`` what one of each phase does."""
    whole, phases = library.pack_of("per-token"), library.pack_of("per-phase")
    mine = {**whole.params, **step_options.params_of(whole.sql)}

    def run(traces: list[Path] | None, flags: Flags, *, by_phase: bool, **params: Any) -> None:
        if by_phase:
            for name, param in mine.items():
                if params[name] != (str(param.default) if param.has_unit and param.default else param.default):
                    raise UsageError(f"{param.flag} is for per-token without --by-phase", "leave one of them out")
            params = {}
        answer_pack(phases if by_phase else whole, traces, flags, params)

    own = flag("by_phase", bool, "--by-phase", help="One column per phase: prefill, mixed, decode, as in per-phase.")
    return with_flags(run, help_of(whole), *map(flag_of, mine.values()), own, argument=traces_argument())
