"""The cards of kernels: what the page's drawer shows about each of the kernels that take the most time."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from nsys_insight.page.queries import ask, ask_each
from nsys_insight.text.cells import printable
from nsys_insight.text.kernel_names import fit_all, make_all_readable
from nsys_insight.text.units import value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.page.windows import Window
    from nsys_insight.session.answer import Answer
    from nsys_insight.session.session import Session

# Limits: cards; rows of shapes, callers and other reports in a card; histogram bins; columns of steps.
MAX_CARDS, MAX_ROWS, BINS, MAX_STEP_COLUMNS = 60, 5, 24, 120
# Characters of a kernel's name in the heading, and of its full name.
_NAME_LENGTH, _FULL_NAME_LENGTH = 72, 1_000
_BOUND_COLUMNS = ("grid", "block", "bound", "confidence", "evidence", "reason")
_HEADROOM_COLUMNS = (
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


def make_cards(trace: Session, steps: StepOptions, window: Window, answers: Mapping[str, Answer]) -> dict[int, Card]:
    """Return the cards by the id of the kernel's name, the kernel with the most time first.

    Args:
        trace: The trace, in its scope.
        steps: How steps are found.
        window: Where callers are searched for: the typical step.
        answers: The answers of the reports `classify-kernels` and `headroom` that have rows.
    """
    kernels = ask(trace, "card_kernels", steps, max_rows=MAX_CARDS)
    if not kernels:
        return {}
    name_ids = [row.name_id for row in kernels if row.name_id is not None]
    has_chains = bool(ask(trace, "card_chains", steps))
    query_rows = ask_each(trace, steps, {
        "card_durations": {
            "names": name_ids, "bins": BINS,
            "shortest": [row.min_ns for row in kernels if row.name_id is not None],
            "longest": [row.max_ns for row in kernels if row.name_id is not None],
        },
        "card_steps": {"names": name_ids, "max_columns": MAX_STEP_COLUMNS},
        "card_shapes": {"names": name_ids, "max_rows": MAX_ROWS},
        "card_callers" if has_chains else "card_ranges": {
            "names": name_ids, "from_ns": window.start_ns, "to_ns": window.end_ns, "max_rows": MAX_ROWS
        },
    })  # fmt: skip
    duration_bins, step_columns, shapes, locations = map(_group_by_name, query_rows)
    readable_names = make_all_readable({row.name for row in kernels})
    short_names = fit_all(readable_names.values(), _NAME_LENGTH)
    bounds = {
        name: _format_rows(answers.get(name), columns)
        for name, columns in (("classify-kernels", _BOUND_COLUMNS), ("headroom", _HEADROOM_COLUMNS))
    }
    return {
        row.name_id: {
            "key": row.name,
            "name": printable(short_names[readable_names[row.name]]),
            "whole": printable(row.name)[:_FULL_NAME_LENGTH],
            "facts": _describe_kernel(row),
            "least": row.min_ns,
            "most": row.max_ns,
            "bins": [[duration_bin.bin, duration_bin.calls] for duration_bin in duration_bins[row.name_id]],
            "steps": [
                [column.step, column.last_step, column.kernel_ns / column.steps, column.calls / column.steps]
                for column in step_columns[row.name_id]
            ],
            "shapes": [_format_shape(shape) for shape in shapes[row.name_id]],
            "places": [
                [_format_location(location.place, has_chains), location.calls, value("a_ns", location.total_ns)]
                for location in locations[row.name_id]
            ],
            "bound": bounds["classify-kernels"][row.name],
            "ncu": bounds["headroom"][row.name],
        }
        for row in kernels
    }


def _group_by_name(rows: Sequence[Any]) -> defaultdict[int, list[Any]]:
    rows_by_name: defaultdict[int, list[Any]] = defaultdict(list)
    for row in rows:
        rows_by_name[row.name_id].append(row)
    return rows_by_name


def _describe_kernel(row: Any) -> list[list[str]]:
    facts = [
        ("family", row.family), ("provenance", row.provenance), ("calls", f"{row.calls:,}"),
        ("total", f"{value('a_ns', row.total_ns)}, {value('a_pct', row.share_pct)} of kernel time"),
        ("mean", value("a_ns", row.avg_ns)), ("median", value("a_ns", row.med_ns)),
        ("shortest, longest", f"{value('a_ns', row.min_ns)}, {value('a_ns', row.max_ns)}"),
    ]  # fmt: skip
    return [[label, text] for label, text in facts if text]


def _format_shape(row: Any) -> list[str]:
    shared = value("a_bytes", row.shared_bytes) if row.shared_bytes else "0 B"
    return [
        row.grid, row.block, f"{row.calls:,}", value("a_ns", row.avg_ns), value("", row.registers_per_thread), shared,
        value("a_pct", row.occupancy_pct), value("a_ratio", row.waves_per_sm),
    ]  # fmt: skip


def _format_location(location: str | None, has_chains: bool) -> str:  # noqa: FBT001 - the kind of location
    return printable(location)[:200] if location else "(no backtrace)" if has_chains else "outside NVTX ranges"


def _format_rows(answer: Answer | None, columns: Sequence[str]) -> defaultdict[str, list[list[str]]]:
    """Return the first rows of a report for each kernel, as texts."""
    rows_by_kernel: defaultdict[str, list[list[str]]] = defaultdict(list)
    for row in answer.dicts() if answer else ():
        if len(rows_by_kernel[row["name"]]) < MAX_ROWS:
            rows_by_kernel[row["name"]].append([printable(value(column, row[column])) for column in columns])
    return rows_by_kernel
