"""The loops of a program: its steps, their layers, and what runs around them.

The loop nest is recovered from the order of the operations (`nest.py`); `levels.py` measures each level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.facts import operations

if TYPE_CHECKING:
    from nsys_insight.facts.context import Context


def fill(context: Context) -> None:
    """Fill the tables of `tables.toml` for the busiest process."""
    run, connection = context.runner("loops"), context.connection
    busiest = context.runner("steps")("busiest")
    if not busiest:
        return
    process = busiest[0].process_id
    operations.find(context, process)
    run("sequence", process=process)
    tokens = run("tokens")

    from nsys_insight.facts.arrays import np
    from nsys_insight.facts.loops.lanes import find_loops
    from nsys_insight.facts.loops.sequence import read_sequence

    sequence = read_sequence(context, tokens)
    for table, rows in find_loops(sequence, dict(enumerate(token.class_id for token in tokens)), process).items():
        if table == "loop_operations":
            first = rows.pop("first")
            first_tokens = [tokens[number] for number in sequence["token"][first].tolist()]
            rows["kind"] = np.array([token.kind for token in first_tokens])
            rows["name_id"] = np.array([-1 if token.name_id is None else token.name_id for token in first_tokens])
            rows |= {name: sequence[name][first] for name in ("host_ns", "start_ns", "end_ns")}
        connection.register("rows_to_insert", rows)
        run(table)
        connection.unregister("rows_to_insert")
    connection.execute("DROP VIEW internal.loop_sequence; DROP TABLE internal.loop_others")
