"""The log of an experiment for people: a table, a plot of the iterations, and each of them in full, as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.render.markdown import prose
from nsys_insight.text.cells import printable, width_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsys_insight.experiment.log import Log, Try

_BAR, _NAME = 40, 32  # columns


def page(log: Log) -> str:
    """Write the log."""
    return "\n".join(_lines(log)) + "\n"


def plot(log: Log) -> list[str]:
    """Draw a bar for each state that was measured, in the order of the tries; those of one metric and unit."""
    metric = log.current.metric
    shown = [one for one in log.tries if one.after is not None and one.metric == metric]
    most = max((one.after or 0 for one in shown), default=0)
    if most <= 0:
        return []
    names = [_fit(f"{one.number} {one.change}", _NAME) for one in shown]
    width = max(map(width_of, names))
    lines = [f"{metric}"]
    for name, one in zip(names, shown, strict=True):
        value = one.after or 0
        bar = "█" * max(1, round(_BAR * value / most))
        mark = {"kept": "", "reverted": " reverted", "open": " open"}[one.status]
        lines.append(f"{name}{' ' * (width - width_of(name))} {bar} {value:,.4g}{mark}")
    return lines


def _lines(log: Log) -> Iterator[str]:
    setup = log.setup
    yield f"# {_text(setup.goal)}"
    yield ""
    yield f"- benchmark: `{_code(setup.command)}`"
    yield f"- tests: {f'`{_code(setup.test)}`' if setup.test else 'none, so nothing can be accepted'}"
    yield ""
    yield "| # | change | status | decision | before | after | change % | tests |"
    yield "|---:|---|---|---|---:|---:|---:|---|"
    for one in log.tries:
        cells = (
            str(one.number), _text(one.change), one.status, one.decision, _number(one.before), _number(one.after),
            "" if one.change_pct is None else f"{one.change_pct:+.1f}", one.tests,
        )  # fmt: skip
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    drawn = plot(log)
    if drawn:
        yield from ("", "```text", *drawn, "```")
    for one in log.tries:
        yield from _of_try(one)


def _of_try(one: Try) -> Iterator[str]:
    yield from ("", f"## {one.number}. {_text(one.change)}", "")
    yield f"{one.when}, {one.status}. **{_text(one.sentence)}**"
    yield ""
    if one.because:
        yield f"- hypothesis: {_text(one.because)}"
    if one.number:
        yield f"- command: `{_code(one.command)}`"
    if one.low_pct is not None and one.high_pct is not None:
        yield f"- interval of the change, 95 %: {one.low_pct:+.1f} % to {one.high_pct:+.1f} %"
    for title, texts in (
        ("evidence", one.evidence), ("check", one.checks), ("other metric", one.metrics),
        ("side effect", one.side_effects), ("trace", one.trace_diff), ("ncu", one.ncu_diff),
        ("next candidate", one.candidates), ("note", one.notes),
    ):  # fmt: skip
        for text in texts:
            yield f"- {title}: {_text(text)}"
    if one.conditions:
        yield "- measured with: " + _text(", ".join(f"{name} {value}" for name, value in one.conditions.items()))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.4g}"


def _text(text: str) -> str:
    return prose(printable(text))


def _code(text: str) -> str:
    return printable(text).replace("`", "'")


def _fit(text: str, width: int) -> str:
    text = printable(text)
    while width_of(text) > width:
        text = text[:-2] + "…"
    return text
