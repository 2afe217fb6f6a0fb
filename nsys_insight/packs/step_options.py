"""What the user may say about steps: options of every pack that reads what is found about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import UsageError
from nsys_insight.model.producers import facts_read, options_of, producer_of
from nsys_insight.packs.pack import Param

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsys_insight.packs.pack import Pack
    from nsys_insight.sql.names import Names

METHODS = ("auto", "nvtx", "graph", "sequence", "count")

PARAMS = {
    param.name: param
    for param in (
        Param("step_method", str, "auto", "How to find steps", METHODS),
        Param("step_range", str, None, "Steps are the NVTX ranges of this name (* and ? are wildcards)"),
        Param("tokens", int, None, "Number of tokens (steps, frames) in the trace or scope", least=1),
        Param("tokens_per_step", int, None, "Tokens that a step makes for each sequence, if not one", least=1),
        Param("batch", int, None, "Sequences that a step works on, if not one", least=1),
    )
}


@dataclass(frozen=True)
class StepOptions:
    """What the user says about steps; None is left to be found out.

    `tokens` is the number of tokens in all steps; else each step makes `tokens_per_step` for each of `batch` sequences.
    """

    step_method: str = "auto"
    step_range: str | None = None
    tokens: int | None = None
    tokens_per_step: int | None = None
    batch: int | None = None

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        if self.tokens and (self.tokens_per_step or self.batch):
            raise UsageError(
                "--tokens is the total, so it cannot be combined with --tokens-per-step or --batch",
                "give one or the other",
            )
        if self.step_range and self.step_method not in ("auto", "nvtx"):
            raise UsageError(f"--step-range is not for --step-method {self.step_method}", "omit one of them")
        if self.step_method == "count" and not self.tokens:
            raise UsageError("--step-method count needs the number of tokens", "give it: --tokens N")

    @property
    def given(self) -> dict[str, Any]:
        """The options that say something, by name."""
        return {name: value for name, value in vars(self).items() if value not in (None, PARAMS[name].default)}

    def taken_by(self, pack: Pack) -> dict[str, Any]:
        """The options that say something and that a report takes, be it as a parameter of its own."""
        takes = pack.params.keys() | params_of(pack.names).keys()
        return {name: value for name, value in self.given.items() if name in takes}


AUTO = StepOptions()


def checked(given: Mapping[str, Any]) -> StepOptions:
    """Read the options that were given by name; None is not given.

    Raises:
        UsageError: One is impossible, or two contradict each other.
    """
    return StepOptions(**{name: PARAMS[name].value(value) for name, value in given.items() if value is not None})


def params_of(query: str | Names) -> dict[str, Param]:
    """The parameters that a query takes because it reads facts that depend on how steps are found."""
    return PARAMS if any("steps" in options_of(producer_of(table).name) for table in facts_read(query)) else {}
