"""Reports as questions: a report's statement and notes with its parameters, and how its steps are found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nsys_insight.errors import UsageError
from nsys_insight.facts.context import FactOptions
from nsys_insight.model import views
from nsys_insight.packs import step_options
from nsys_insight.packs.step_options import AUTO, StepOptions
from nsys_insight.session.prefetch import Question
from nsys_insight.sql.headers import chosen
from nsys_insight.sql.parameters import bind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsys_insight.ingest.scope import Scope
    from nsys_insight.packs.pack import Pack

# The note of every report in a scope by --nvtx, and the query for its sentence.
SCOPE_NOTE = "scope"
_SCOPE_QUERY = "SELECT sentence FROM _left_out WHERE EXISTS (FROM answer)"
# The note of every report with a topic: data that the trace does not contain although its calls show such operations.
_UNRECORDED_NOTE = "unrecorded"
_UNRECORDED_QUERY = "SELECT sentence FROM _unrecorded"
# A report about kernels is complete without the calls and copies.
_UNRECORDED_KERNELS_QUERY = f"{_UNRECORDED_QUERY} WHERE what = 'kernels' AND NOT EXISTS (FROM answer)"


class ReportQuestion(NamedTuple):
    """A report as a question, with the names of its notes and the values of its parameters."""

    question: Question
    notes: list[str]
    values: dict[str, Any]


def is_of_run(pack: Pack) -> bool:
    """Whether a report is about all ranks of a run together."""
    return any(view.is_of_run for view in views.views_read(pack.names))


def report_question(
    pack: Pack, params: Mapping[str, Any], steps: StepOptions | None, scope: Scope, scope_steps: StepOptions
) -> ReportQuestion:
    """Put a report into a question.

    Args:
        pack: The report.
        params: Its parameters, and the options about steps by name where `steps` is None.
        steps: How steps are found.
        scope: The scope that it is asked in.
        scope_steps: How the steps are found that the scope chooses.

    Raises:
        UsageError: A parameter is wrong, or the scope's steps would be found in another way.
    """
    params = dict(params)
    takes = step_options.params_of(pack.names)
    if steps is None:
        given = {name: params.pop(name) for name in takes if name in params}
        steps = step_options.checked(given)
    else:
        given = vars(steps) if takes else {}
        params = {name: value for name, value in steps.given.items() if name in pack.params} | params
    if takes and scope.is_of_steps_alone and steps not in (AUTO, scope_steps):
        raise UsageError(
            f"the steps of this scope ({scope.words}) are found already",
            "say how to find them where they are chosen: trace.scope(step=…, steps=StepOptions(…))",
        )
    statement, values = pack.statement(params)
    options = FactOptions(steps if takes else AUTO, values.get("min_gap_ns"))
    notes = pack.notes | ({SCOPE_NOTE: _SCOPE_QUERY} if scope.ranges is not None else {})
    if pack.topic and not is_of_run(pack):
        notes |= {_UNRECORDED_NOTE: _UNRECORDED_KERNELS_QUERY if pack.topic == "kernels" else _UNRECORDED_QUERY}
    queries = tuple(bind(chosen(note, values), values) for note in notes.values())
    return ReportQuestion(Question(statement, queries, options, is_built_in=pack.is_ours), list(notes), values | given)
