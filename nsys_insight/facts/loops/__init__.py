"""The loops of a program: its steps, their layers, and what runs around them.

The loop nest is recovered from the order of the operations (`nest.py`); `levels.py` measures each level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsys_insight.facts import operations
from nsys_insight.facts.reading import read_columns

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

    import numpy as np

    from nsys_insight.facts.loops.lanes import find_loops

    columns = read_columns(
        connection,
        "SELECT token, shape, host_ns, start_ns, end_ns, gpu_ns, is_launch, kind IN ('kernel', 'graph') AS is_major,"
        " kind = 'graph' AS is_graph, kind = 'D2H' OR token = hash('wait') AS is_end,"
        " coalesce(device_id, -1)::SMALLINT AS device_id, coalesce(stream_id, -1)::INTEGER AS stream_id,"
        " is_result, kind = 'H2D' AS is_input, token = hash('wait') AS is_wait,"
        " is_communication, gpu_ns > 0 OR kind IN ('kernel', 'graph', 'memset', 'H2D', 'D2H', 'copy') AS is_operation"
        " FROM internal.loop_sequence ORDER BY position",
    )
    sequence = {name: np.asarray(values) for name, values in columns.items()}
    classes = run("classes")
    sequence["ends_step"] = np.isin(sequence["token"], [row.token for row in classes if row.ends_step])
    for table, rows in find_loops(sequence, {row.token: row.class_id for row in classes}, process).items():
        connection.register("rows_to_insert", rows)
        run(table)
        connection.unregister("rows_to_insert")
    connection.execute("DROP TABLE internal.loop_sequence")
