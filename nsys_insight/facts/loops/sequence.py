"""The operations of a process in the order of the host calls, as NumPy columns."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from nsys_insight.facts.arrays import Columns, np, read_columns
from nsys_insight.facts.operations import find_boundaries
from nsys_insight.sql.parameters import bind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsys_insight.facts.context import Context

# Operations that are read and sorted at a time. If all are sorted at once, they are in memory three times.
ROWS_PER_READ = 500_000
_COPIES = ("H2D", "D2H", "copy")


def read_sequence(context: Context, tokens: Sequence[Any]) -> Columns:
    """Read the columns that `lanes.find_loops` needs. A token is its position in `tokens`, the rows of `tokens.sql`."""
    rows = _read_rows(context, tokens)
    _unite_copies(rows, tokens)
    of_token = {
        "is_launch": [token.kind in {"kernel", "graph"} for token in tokens],
        "is_graph": [token.kind == "graph" for token in tokens],
        "is_input": [token.kind == "H2D" for token in tokens],
        "is_end": [token.kind in {"D2H", "wait"} for token in tokens],
        "is_wait": [token.is_wait for token in tokens],
        "is_operation": [not token.is_wait for token in tokens],
        "is_communication": [token.is_communication for token in tokens],
        "ends_step": [token.ends_step for token in tokens],
        "device_id": [token.device_id for token in tokens],
    }
    for name, values in of_token.items():
        smallest = np.bool_ if name != "device_id" else np.result_type(np.int16, *map(np.min_scalar_type, values))
        rows[name] = np.array(values, smallest)[rows["token"]]
    return rows | {"is_major": rows["is_launch"]}


def _read_rows(context: Context, tokens: Sequence[Any]) -> Columns:
    """Read the operations piece by piece, and sort each piece by the time of the host call."""
    (statement,) = context.statements("loops", "rows").values()
    rows_count = sum(token.rows_count for token in tokens)
    from_clause = "FROM internal.loop_sequence"
    is_long = rows_count > ROWS_PER_READ
    boundaries = find_boundaries(context.connection, "host_ns", from_clause, ROWS_PER_READ) if is_long else []
    hashes = np.array([token.token for token in tokens], np.uint64)
    columns: Columns = {}
    position = 0
    for from_ns, to_ns in pairwise([None, *boundaries, None]):
        rows = read_columns(context.connection, bind(statement, {"from_ns": from_ns, "to_ns": to_ns}))
        order = np.argsort(rows["host_ns"], kind="stable")
        if (np.diff(rows["host_ns"][order]) == 0).any():  # a sort by four keys takes several times as long
            order = np.lexsort((rows["token"], rows["end_ns"], rows["start_ns"], rows["host_ns"]))
        rows["token"] = np.searchsorted(hashes, rows["token"]).astype(np.int32)
        for name, values in rows.items():
            column = columns.setdefault(name, np.empty(rows_count, values.dtype))
            np.take(values, order, out=column[position : position + len(order)])
        position += len(order)
    narrow_columns = {name: _narrow(columns.pop(name)[:position]) for name in ("gpu_ns", "stream_id")}
    return {name: values[:position] for name, values in columns.items()} | narrow_columns


def _narrow(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return numbers in half the memory if they fit, as durations on the GPU and ids of streams nearly always do."""
    fits = len(values) and max(abs(int(values.min())), int(values.max())) < 1 << 31
    return values.astype(np.int32) if fits else values


def _unite_copies(rows: Columns, tokens: Sequence[Any]) -> None:
    """Give copies of one kind between two launches of the same kernels one token: their size may vary by iteration."""
    kinds = sorted({(token.kind, token.device_id) for token in tokens})
    kind = np.array([kinds.index((token.kind, token.device_id)) for token in tokens])
    is_copy = np.array([token.kind in _COPIES for token in tokens])
    is_launch = np.array([token.kind in {"kernel", "graph"} for token in tokens])
    if not is_copy.any():
        return
    operations = rows["token"][np.array([not token.is_wait for token in tokens])[rows["token"]]]
    copies = np.flatnonzero(is_copy[operations[1:-1]]) + 1
    before, copy, after = (operations[copies + offset] for offset in (-1, 0, 1))
    is_between = is_launch[before] & is_launch[after]
    before, copy, after = before[is_between], copy[is_between], after[is_between]
    contexts = (kind[copy] * len(tokens) + before) * len(tokens) + after
    _, context_index = np.unique(contexts, return_inverse=True)
    first_token = np.full(len(context_index), len(tokens))
    np.minimum.at(first_token, context_index, copy)
    common_token = np.arange(len(tokens), dtype=np.int32)
    np.minimum.at(common_token, copy, first_token[context_index])
    rows["token"] = common_token[rows["token"]]
