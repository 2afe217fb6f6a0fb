"""Reports as questions: the statement and notes of a report with its parameters, and its options about steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.errors import UsageError
from nsys_insight.facts.context import FactOptions
from nsys_insight.model import views
from nsys_insight.packs import step_options
from nsys_insight.packs.notes import shared_notes
from nsys_insight.packs.step_options import AUTO, StepOptions
from nsys_insight.session.prefetch import Question
from nsys_insight.sql.headers import drop_branches
from nsys_insight.sql.parameters import bind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsys_insight.ingest.scope import Scope
    from nsys_insight.packs.pack import Pack

# The shared note of every report in a scope by --nvtx.
SCOPE_NOTE = "scope"


class ReportQuestion(NamedTuple):
    """A report as a question, with the names of its notes and the values of its parameters."""

    question: Question
    notes: list[str]
    values: dict[str, Any]


def is_cross_rank(pack: Pack) -> bool:
    """Check whether a report is about all ranks of a run together."""
    return any(view.is_cross_rank for view in views.views_read(pack.names))


def build_question(
    pack: Pack, params: Mapping[str, Any], steps: StepOptions | None, scope: Scope, scope_steps: StepOptions
) -> ReportQuestion:
    """Build the question for a report.

    Args:
        pack: The report.
        params: Its parameters. They include options about steps if there are no `steps`.
        steps: Options about steps.
        scope: The scope of the answer.
        scope_steps: The options that the scope used to find its steps.

    Raises:
        UsageError: A parameter is wrong, or the scope found its steps with other options.
    """
    params = dict(params)
    step_params = step_options.step_params_of(pack.names)
    if steps is None:
        explicit = {name: params.pop(name) for name in step_params if name in params}
        steps = step_options.parse_options(explicit)
    else:
        explicit = vars(steps) if step_params else {}
        params = {name: value for name, value in steps.explicit.items() if name in pack.params} | params
    if step_params and scope.is_steps_only and steps not in (AUTO, scope_steps):
        raise UsageError(
            f"the steps of this scope ({scope.flags_text}) are found already",
            "say how to find them where they are chosen: trace.scope(step=…, steps=StepOptions(…))",
        )
    statement, values = pack.statement(params)
    options = FactOptions(steps if step_params else AUTO, values.get("min_gap_ns"))
    notes = pack.notes | ({SCOPE_NOTE: shared_notes()[SCOPE_NOTE]} if scope.range_pattern is not None else {})
    if "…" in str(scope.nvtx):
        notes |= {"shortened": shared_notes()["shortened"]}
    if pack.topic and not is_cross_rank(pack):
        # A report about kernels is complete without the calls and copies.
        notes |= {"unrecorded": shared_notes()["unrecorded_kernels" if pack.topic == "kernels" else "unrecorded"]}
    bound_notes = tuple(note._replace(query=bind(drop_branches(note.query, values), values)) for note in notes.values())
    return ReportQuestion(
        Question(statement, bound_notes, options, is_built_in=pack.is_built_in), list(notes), values | explicit
    )
