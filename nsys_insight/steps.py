"""Steps: the repetitions of the work (one decoded token, one training iteration), found in the trace.

The views `steps` and `step_method` read two tables that are filled here when a query needs them: `found_steps` and
`found_method`. The methods, in the order in which they are tried: an NVTX range that repeats, CUDA graphs, the repeated
sequence of operations on the busiest stream; and a number of tokens that is given, by which the whole is divided.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from nsys_insight import model, step_ranges, step_sequence
from nsys_insight.errors import UsageError
from nsys_insight.packs import Param, bind
from nsys_insight.paths import query

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

METHODS = ("auto", "nvtx", "graph", "sequence", "count")
# From so many steps on, and such a share of the GPU time from the first to the last, steps are found with high, or at
# least medium confidence.
HIGH, MEDIUM = (5, 0.95), (3, 0.8)

PARAMS = {
    param.name: param
    for param in (
        Param("step_method", str, "auto", "How steps are told", METHODS),
        Param("step_range", str, None, "Steps are the NVTX ranges of this name (* and ? match anything)"),
        Param("tokens", int, None, "How many tokens (steps, frames) the trace or scope holds in all", least=1),
        Param("tokens_per_step", int, None, "How many tokens a step makes for each sequence, if not one", least=1),
        Param("batch", int, None, "How many sequences a step works on, if not one", least=1),
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
                "--tokens is all tokens, so it cannot go with --tokens-per-step or --batch", "give one or the other"
            )
        if self.step_range and self.step_method not in ("auto", "nvtx"):
            raise UsageError(f"--step-range is not for --step-method {self.step_method}", "leave one of them out")
        if self.step_method == "count" and not self.tokens:
            raise UsageError("--step-method count needs the number of tokens", "give it: --tokens N")


AUTO = StepOptions()
OPTIONS = frozenset(field.name for field in fields(StepOptions))


def options(given: dict[str, Any]) -> StepOptions:
    """Check the options that were given by name.

    Raises:
        UsageError: One is impossible, or two contradict each other.
    """
    return StepOptions(**{name: PARAMS[name].value(value) for name, value in given.items() if value is not None})


def needed(sql: str) -> bool:
    """Tell whether a query reads what is found about steps."""
    return any("found_" in view.create for view in model.needed(sql))


def params_of(sql: str) -> dict[str, Param]:
    """The parameters that a query takes because it reads what is found about steps; none where it does not."""
    return PARAMS if needed(sql) else {}


def create_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the tables that the views read, without rows."""
    connection.execute(query("steps/tables"))


@dataclass(frozen=True)
class Method:
    """How steps were told, by which name or mark, and how much of the GPU time that is known to hold."""

    method: str | None
    pattern: str | None = None
    reason: str | None = None
    share: float | None = None
    named: bool = False


def find(connection: duckdb.DuckDBPyConnection, asked: StepOptions, prepare: Callable[[str], None]) -> None:
    """Fill `found_steps` and `found_method`.

    Args:
        connection: Where the model is.
        asked: What the user says about steps.
        prepare: Creates the views that a statement names.

    Raises:
        UsageError: No NVTX range has the name that the user gave.
    """

    def run(name: str, **values: Any) -> list[Any]:
        sql = query(f"steps/{name}")
        prepare(sql)
        return connection.execute(bind(sql, values)).fetchall()

    create_tables(connection)
    run("no_pieces")
    busiest = run("busiest")
    if not busiest:
        return
    stream = step_sequence.Stream(*busiest[0])
    run("launched", process=stream.process)
    method = _method(run, stream, asked)
    if method.method:
        run("totals", process=stream.process)
        run("judged")
    run(
        "method",
        method=method.method, pattern=method.pattern, share=method.share, named=method.named, reason=method.reason,
        tokens=asked.tokens, tokens_per_step=(asked.tokens_per_step or 1) * (asked.batch or 1),
        high_steps=HIGH[0], high=HIGH[1], medium_steps=MEDIUM[0], medium=MEDIUM[1], process=stream.process,
    )  # fmt: skip
    for kind, names in (
        ("VIEW", "named ops"),
        ("TABLE", "launched stream cut pieces ranges calls waits work busy totals"),
    ):
        for name in names.split():
            connection.execute(f"DROP {kind} IF EXISTS step_{name}")


def _method(run: Callable[..., list[Any]], stream: step_sequence.Stream, asked: StepOptions) -> Method:
    """Try the methods in their order, and leave what was found in `step_pieces`."""
    tried = ("nvtx", "graph", "sequence") if asked.step_method == "auto" else (asked.step_method,)
    ((scope_name,),) = run("scope_name")
    if "nvtx" in tried:
        wanted = asked.step_range or scope_name
        scoped = bool(scope_name) and not asked.step_range
        ranges = step_ranges.find(run, stream.process, wanted=wanted, scoped=scoped)
        if ranges:
            reason = f"{100 * ranges.inside:.1f} % of the GPU time from the first to the last is launched in them"
            return Method("nvtx", ranges.pattern, reason, ranges.inside, named=wanted is not None)
        if asked.step_range:
            raise UsageError(
                f"no NVTX range of process {stream.process} is called {asked.step_range!r}",
                "nsys-insight nvtx lists them; * matches anything",
            )
    for name in ("graph", "sequence"):
        if name in tried:
            mark = step_sequence.find(run, stream, graphs=name == "graph", asked=asked.step_method == name)
            if mark:
                return Method(name, mark)
    if asked.tokens and asked.step_method in ("auto", "count"):
        run("whole", process=stream.process)
        return Method(
            "count",
            None,
            "the whole scope is divided by the number of tokens, with what it holds of warm-up and prefill",
        )
    return Method(None, None, "nothing repeats that holds most of the GPU time")
