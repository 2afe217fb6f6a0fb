"""What all reports that group by caller have in common: the flag --stack, what its choices mean, and the note.

A report has them where the choices of its parameter ``group_by`` name ``caller`` and ``stack``.
"""

from __future__ import annotations

from dataclasses import replace

from nsys_insight.packs.params import Param

_CHOICES = frozenset({"caller", "stack"})
_STACK = Param("stack", int, 5, "With --group-by stack: number of frames, from the caller outwards", least=1)
_MEANING = (
    "the caller (the innermost Python frame, else the operator, else the program's own function),"
    " or the caller with the frames around it"
)
# Asked for nothing but these choices: what tells callers takes time to find.
_NOTE = """
FROM (
    SELECT NULL AS sentence WHERE false
    UNION ALL
    SELECT sentence FROM {} WHERE $group_by IN ('caller', 'stack')
) WHERE EXISTS (FROM answer)"""
# The view that has the note for a report on the callers of some calls, by the view that it has them from.
_OF_SOME = {"_few_callers": "_few_caller_sentence", "_gap_callers": "_gap_caller_sentence"}


def completed(params: dict[str, Param], notes: dict[str, str], sql: str) -> tuple[dict[str, Param], dict[str, str]]:
    """Add to a header's parameters and notes what goes without saying; other reports keep theirs."""
    group_by = params.get("group_by")
    if not group_by or not set(group_by.choices) >= _CHOICES:
        return params, notes
    explained = replace(group_by, help=f"{group_by.help}, {_MEANING}")
    view = next((sentence for callers, sentence in _OF_SOME.items() if callers in sql), "_caller_sentence")
    return {**params, "group_by": explained, "stack": _STACK}, {"callers": _NOTE.format(view), **notes}
