"""The commands ``classify``, ``roofline`` and ``fusion``: packs about kernels, with a flag of their own."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsys_insight import packs, steps, terminal
from nsys_insight.command import help_of, open_traces, pack_command, save
from nsys_insight.errors import UsageError
from nsys_insight.flags import flag_of, with_flags

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def classify_command() -> Callable[..., None]:
    """Make the command ``classify``: what bounds the steady state, or each kernel."""
    whole, each = packs.find("classify"), packs.find("classify-kernels")
    mine = {**whole.params, **steps.params_of(whole.sql)}

    def run(trace: Path | None, *, kernels: bool, **given: Any) -> None:
        others = mine if kernels else each.params
        for param in others.values():
            if given.pop(param.name) != (str(param.default) if param.has_unit else param.default):
                told = "without" if kernels else "with"
                raise UsageError(f"{param.flag} is for classify {told} --kernels", "nsys-insight classify --help")
        pack_command(each if kernels else whole)(trace, **given)

    option = Annotated[bool, typer.Option("--kernels", help="Say what bounds each kernel, as classify-kernels does.")]
    own = inspect.Parameter("kernels", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=option)
    return with_flags(run, help_of(whole), own, *map(flag_of, [*mine.values(), *each.params.values()]))


def roofline_command() -> Callable[..., None]:
    """Make the command ``roofline``: its pack as a table, or drawn."""
    pack = packs.find("roofline")

    def run(trace: Path | None, *, plot: bool, **given: Any) -> None:
        output: Path | None = given["output"]
        suffix = output.suffix.lower() if output else ""
        from nsys_insight import roofline

        picture = suffix if suffix in roofline.PICTURES else None
        if given["explain"] or not (plot or picture):
            pack_command(pack)(trace, **given)
            return
        params = {name: given[name] for name in pack.params}
        with open_traces([trace] if trace else [], given) as opened:
            answer = opened.answer(pack.name, **params)
            drawn = roofline.draw(answer, picture, limit=given["limit"], width=terminal.width())
        if output is None:
            print(drawn)
        else:
            save(output, drawn)
        for text in answer.notes:
            terminal.note(text)

    option = Annotated[bool, typer.Option("--plot", help="Draw with characters; -o x.svg and -o x.png are pictures.")]
    own = inspect.Parameter("plot", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=option)
    return with_flags(run, help_of(pack), own, *map(flag_of, pack.params.values()))


def fusion_command() -> Callable[..., None]:
    """Make the command ``fusion``, which answers the pack fusion-candidate where one candidate is asked for."""
    pack, one = packs.find("fusion"), packs.find("fusion-candidate")

    def run(trace: Path | None, **given: Any) -> None:
        number = given.pop("explain_candidate")
        if number is None:
            pack_command(pack)(trace, **given)
        else:
            pack_command(one)(trace, candidate=number, **given)

    option = typer.Option(
        "--explain-candidate",
        min=1,
        help="Show one candidate: its kernels, and how its gain is reckoned.",
        show_default=False,
    )
    own = inspect.Parameter(
        "explain_candidate", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[int | None, option]
    )
    flags = [*pack.params.values(), *steps.params_of(pack.sql).values()]
    return with_flags(run, help_of(pack), own, *map(flag_of, flags))
