"""The cards of kernels: what the page's drawer shows of each of those that take most time."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from nsys_insight.page.queries import ask, ask_each
from nsys_insight.text.cells import printable
from nsys_insight.text.kernel_names import fit_all, readable_all
from nsys_insight.text.units import value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.page.windows import Window
    from nsys_insight.session.answer import Answer
    from nsys_insight.session.session import Session

# At most: cards; shapes, callers and rows of other reports in a card; bins of durations; columns of steps.
MOST, ROWS, BINS, COLUMNS = 60, 5, 24, 120
_NAME, _WHOLE = 72, 1_000
_BOUND = ("grid", "block", "bound", "confidence", "evidence", "reason")
_NCU = (
    "grid",
    "block",
    "bound",
    "ceiling",
    "ceiling_used_pct",
    "recoverable_ns",
    "ncu_rule",
    "ncu_saving_pct",
    "match",
)

Card = dict[str, Any]


def cards(trace: Session, steps: StepOptions, window: Window, answers: Mapping[str, Answer]) -> dict[int, Card]:
    """Make the cards by the id of the kernel's name, the one that takes most time first.

    Args:
        trace: The trace, in its scope.
        steps: How steps are found.
        window: Where callers are looked for: the step that stands for the others.
        answers: The reports `classify-kernels` and `headroom`, as far as they have rows.
    """
    kernels = ask(trace, "card_kernels", steps, most=MOST)
    if not kernels:
        return {}
    names = [row.name_id for row in kernels if row.name_id is not None]
    has_chains = bool(ask(trace, "card_chains", steps))
    found = ask_each(trace, steps, {
        "card_durations": {
            "names": names, "bins": BINS,
            "shortest": [row.min_ns for row in kernels if row.name_id is not None],
            "longest": [row.max_ns for row in kernels if row.name_id is not None],
        },
        "card_steps": {"names": names, "most": COLUMNS},
        "card_shapes": {"names": names, "most": ROWS},
        "card_callers" if has_chains else "card_ranges": {
            "names": names, "from_ns": window.start_ns, "to_ns": window.end_ns, "most": ROWS
        },
    })  # fmt: skip
    bins, paces, shapes, places = map(_by_name, found)
    clear = readable_all({row.name for row in kernels})
    short = fit_all(clear.values(), _NAME)
    bounds = {
        name: _named(answers.get(name), columns) for name, columns in (("classify-kernels", _BOUND), ("headroom", _NCU))
    }
    return {
        row.name_id: {
            "key": row.name,
            "name": printable(short[clear[row.name]]),
            "whole": printable(row.name)[:_WHOLE],
            "facts": _facts(row),
            "least": row.min_ns,
            "most": row.max_ns,
            "bins": [[one.bin, one.calls] for one in bins[row.name_id]],
            "steps": [
                [one.step, one.last_step, one.kernel_ns / one.steps, one.calls / one.steps]
                for one in paces[row.name_id]
            ],
            "shapes": [_shape(one) for one in shapes[row.name_id]],
            "places": [
                [_place(one.place, has_chains), one.calls, value("a_ns", one.total_ns)] for one in places[row.name_id]
            ],
            "bound": bounds["classify-kernels"][row.name],
            "ncu": bounds["headroom"][row.name],
        }
        for row in kernels
    }


def _by_name(rows: Sequence[Any]) -> defaultdict[int, list[Any]]:
    found: defaultdict[int, list[Any]] = defaultdict(list)
    for row in rows:
        found[row.name_id].append(row)
    return found


def _facts(row: Any) -> list[list[str]]:
    facts = [
        ("family", row.family), ("provenance", row.provenance), ("calls", f"{row.calls:,}"),
        ("total", f"{value('a_ns', row.total_ns)}, {value('a_pct', row.share_pct)} of kernel time"),
        ("mean", value("a_ns", row.avg_ns)), ("median", value("a_ns", row.med_ns)),
        ("shortest, longest", f"{value('a_ns', row.min_ns)}, {value('a_ns', row.max_ns)}"),
    ]  # fmt: skip
    return [[label, text] for label, text in facts if text]


def _shape(row: Any) -> list[str]:
    shared = value("a_bytes", row.shared_bytes) if row.shared_bytes else "0 B"
    return [
        row.grid, row.block, f"{row.calls:,}", value("a_ns", row.avg_ns), value("", row.registers_per_thread), shared,
        value("a_pct", row.occupancy_pct), value("a_ratio", row.waves_per_sm),
    ]  # fmt: skip


def _place(place: str | None, has_chains: bool) -> str:  # noqa: FBT001 - it says what the place is
    return printable(place)[:200] if place else "(no backtrace)" if has_chains else "outside NVTX ranges"


def _named(answer: Answer | None, columns: Sequence[str]) -> defaultdict[str, list[list[str]]]:
    """The rows of a report by kernel, as texts."""
    found: defaultdict[str, list[list[str]]] = defaultdict(list)
    for row in answer.dicts() if answer else ():
        if len(found[row["name"]]) < ROWS:
            found[row["name"]].append([printable(value(column, row[column])) for column in columns])
    return found
