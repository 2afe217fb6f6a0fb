"""Options about steps: parameters of every pack that reads facts about steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import UsageError
from nsys_insight.model.producers import facts_read, options_of, producer_of
from nsys_insight.packs.pack import Pack, Param
from nsys_insight.text.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsys_insight.sql.names import Names

METHODS = ("auto", "nvtx", "graph", "sequence", "count")

PARAMS = {
    param.name: param
    for param in (
        Param("step_method", str, "auto", "How to find steps", METHODS),
        Param("step_range", str, None, "Steps are the NVTX ranges of this name (* and ? are wildcards)"),
        Param("loop", str, None, "Steps are the iterations of this loop, by its number in loops: 1.2"),
        Param("tokens", int, None, "Number of tokens (steps, frames) in the trace or scope", minimum=1),
        Param("tokens_per_step", int, None, "Tokens that a step makes for each sequence, if not one", minimum=1),
        Param("batch", int, None, "Sequences that a step works on, if not one", minimum=1),
        Param("step_time_ns", int, None, "Time of a step without nsys, as the program or bench measured it", minimum=1),
    )
}


@dataclass(frozen=True)
class StepOptions:
    """The user's options about steps; None means detected automatically.

    `tokens` is the number of tokens in all steps. Without it, each step makes `tokens_per_step` tokens for each of
    `batch` sequences. `step_time_ns` was measured without the profiler: it replaces the estimate of that time.
    """

    step_method: str = "auto"
    step_range: str | None = None
    loop: str | None = None
    tokens: int | None = None
    tokens_per_step: int | None = None
    batch: int | None = None
    step_time_ns: int | None = None

    def __post_init__(self) -> None:
        """Refuse contradictory options."""
        if self.tokens and (self.tokens_per_step or self.batch):
            raise UsageError(
                "--tokens is the total, so it cannot be combined with --tokens-per-step or --batch",
                "give one or the other",
            )
        if self.step_range and self.step_method not in ("auto", "nvtx"):
            raise UsageError(f"--step-range is not for --step-method {self.step_method}", "omit one of them")
        if self.loop and (self.step_range or self.step_method not in ("auto", "sequence")):
            raise UsageError("--loop says what the steps are", "omit --step-range and --step-method")
        if self.step_time_ns and self.step_method == "count":
            raise UsageError(
                "--step-time is the time of a step, and --step-method count finds no steps",
                "omit --step-time, or name the steps: --step-range NAME",
            )
        if self.step_method == "count" and not self.tokens:
            raise UsageError("--step-method count needs the number of tokens", "give it: --tokens N")

    @property
    def explicit(self) -> dict[str, Any]:
        """Return the options that are set, by name."""
        return {name: value for name, value in vars(self).items() if value not in (None, PARAMS[name].default)}

    def explicit_for(self, pack: Pack) -> dict[str, Any]:
        """Return the options that are set and that a report takes, also as parameters of its own."""
        takes = pack.params.keys() | step_params_of(pack.names).keys()
        return {name: value for name, value in self.explicit.items() if name in takes}


AUTO = StepOptions()


def parse_options(arguments: Mapping[str, Any]) -> StepOptions:
    """Read options by name; None means not set.

    Raises:
        UsageError: There is no such option, an option is impossible, or two contradict each other.
    """
    if unknown := sorted(arguments.keys() - PARAMS.keys()):
        raise UsageError(
            f"there is no option {unknown[0]!r} about steps",
            did_you_mean(unknown[0], PARAMS) or f"they are {', '.join(PARAMS)}",
        )
    return StepOptions(**{name: PARAMS[name].value(value) for name, value in arguments.items() if value is not None})


def step_params_of(query: str | Names) -> dict[str, Param]:
    """Return the parameters that a query takes because it reads facts that depend on how steps are found."""
    return PARAMS if any("steps" in options_of(producer_of(table).name) for table in facts_read(query)) else {}
