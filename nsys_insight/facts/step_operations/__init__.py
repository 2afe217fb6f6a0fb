"""What a step is made of, and what the catalog of constructs says about it.

Patterns are applied to distinct names. Only the conditions of constructs that the step has become SQL: the catalog has
hundreds of entries, and a step a few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_insight.sql.quoting import literal, matches

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsys_insight.facts.context import Context

# What a replacement saves of a row, without what limits it. The high saving counts the idle time before the operations
# that are gone, the low one half of it: the profiler makes a launch take up to twice as long.
_ESTIMATE = """
SELECT
    {construct} AS construct, {number} AS replacement, {is_kind} AS is_kind, {place} AS place, o.row_number,
    least(coalesce(({low})::DOUBLE, 0), o.total_ns) AS low_ns,
    least(coalesce(({high})::DOUBLE, o.total_ns), o.total_ns) AS high_ns,
    least(greatest(coalesce(({launches})::DOUBLE, o.calls), 0), o.calls) AS launches,
    ({saving_low})::DOUBLE AS saving_low_ns, ({saving_high})::DOUBLE AS saving_high_ns
FROM internal.unjudged_operations AS o
WHERE {condition}"""


def fill(context: Context) -> None:
    """Fill `facts.step_operations` and `facts.step_replacements`."""
    run = context.runner("step_operations")
    run("unnamed")
    other_constructs = run("other_constructs")
    if other_constructs:
        context.connection.execute(
            f"UPDATE internal.unnamed_operations SET construct = {_write_choice(other_constructs)}"
            f" WHERE kind <> 'kernel'"
        )
    run("unjudged")
    constructs = run("found_constructs")
    replacements = run("found_replacements")
    estimates = [
        _ESTIMATE.format(
            number=row.replacement,
            construct=literal(row.construct),
            is_kind=literal(row.is_kind),
            place=row.place,
            condition=_write_condition(row),
            low=row.estimate_low or "NULL",
            high=row.estimate_high or "NULL",
            saving_low=row.saving_low or "NULL",
            saving_high=row.saving_high or "NULL",
            launches=row.launches or "o.calls",
        )
        for row in replacements
    ]
    context.connection.execute(
        f"CREATE OR REPLACE TABLE internal.replacement_estimates AS {' UNION ALL '.join(estimates)}"
    )
    efficient = [
        f"WHEN construct = {literal(row.construct)} THEN coalesce(({row.efficient})::BOOLEAN, false)"
        for row in constructs
        if row.efficient
    ]
    condition = f"CASE {' '.join(efficient)} ELSE false END" if efficient else "false"
    context.connection.execute(
        f"CREATE OR REPLACE VIEW internal.efficient_operations AS"
        f" SELECT row_number FROM internal.unjudged_operations WHERE {condition}"
    )
    run("judged")
    run("replaced")


def _write_condition(replacement: Any) -> str:
    """Write when a replacement counts for a row: that of a construct for its own rows, that of a kind for any."""
    if replacement.is_kind:
        return f"o.construct IS NOT NULL AND ({replacement.kind_condition}) AND ({replacement.condition})"
    return f"o.construct = {literal(replacement.construct)} AND ({replacement.condition})"


def _write_choice(constructs: Iterable[Any]) -> str:
    """Write a CASE that finds the construct of an operation without a kernel's name; the first entry that fits."""
    cases = [
        f"WHEN {matches('name', row.operations)} AND ({row.condition or 'true'}) THEN {literal(row.construct)}"
        for row in constructs
    ]
    return f"CASE {' '.join(cases)} END"
