"""How NVTX ranges are nested: the range around each, on its thread and within its domain, and the path of names.

The range around another is the innermost one that is open from its start to its end. One pass over the ranges in order
of their starts finds it: a million ranges take two seconds at any depth. A recursive query takes a step for each level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsys_insight.facts.arrays import np, read_columns
from nsys_insight.ingest.scope import LAST_NAMED_DEPTH
from nsys_insight.sql.rows import insert_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsys_insight.facts.context import Context

    Numbers = np.ndarray[Any, Any]

NO_RANGE = -1
_BATCH_ROWS = 50_000


def fill(context: Context) -> None:
    """Fill `facts.nested_ranges` and `facts.nvtx_paths`."""
    run, connection = context.runner("nested_ranges"), context.connection
    run("ranges")
    ranges = read_columns(
        connection,
        "SELECT CASE WHEN is_free THEN -range_id ELSE coalesce(thread_of(thread_id, process_id), 0) END AS stack_id,"
        " domain_id, start_ns, close_ns, text_id FROM internal.ranges_by_start ORDER BY range_id",
    )
    if len(ranges["text_id"]):
        texts = connection.execute("SELECT text_id, name FROM internal.range_texts").fetchall()
        parents = _find_parents(ranges["stack_id"], ranges["start_ns"], ranges["close_ns"])
        outer = _find_outer(parents, ranges["stack_id"], ranges["domain_id"], ranges["start_ns"], ranges["close_ns"])
        depths, path_ids, paths = _find_paths(parents, ranges["text_id"], dict(texts))
        rows = {"range_id": np.arange(len(parents)) + 1, "outer_id": outer + 1, "parent_id": parents + 1,
                "depth": depths, "path_id": path_ids}  # fmt: skip
        connection.register("rows_to_insert", rows)
        run("insert")
        connection.unregister("rows_to_insert")
        insert_rows(
            connection, "facts.nvtx_paths", [{"path_id": path_id, "path": path} for path_id, path in enumerate(paths)]
        )
    connection.execute("DROP TABLE internal.ranges_by_start; DROP TABLE internal.range_texts")


def _find_parents(stacks: Numbers, starts: Numbers, closes: Numbers) -> Numbers:
    """Return the position of the range around each, in arrays by stack and start."""
    parents = np.empty(len(stacks), dtype=np.int64)
    open_closes, open_positions, last_stack = list[int](), list[int](), None
    for position, (stack, start_ns, close_ns) in enumerate(_iterate(stacks, starts, closes)):
        if stack != last_stack:
            open_closes.clear()
            open_positions.clear()
            last_stack = stack
        # A range that ends before this one surrounds none that starts later: what it surrounds, this one does too.
        while open_closes and (open_closes[-1] < close_ns or open_closes[-1] <= start_ns):
            open_closes.pop()
            open_positions.pop()
        parents[position] = open_positions[-1] if open_positions else NO_RANGE
        open_closes.append(close_ns)
        open_positions.append(position)
    return parents


def _find_outer(parents: Numbers, stacks: Numbers, domains: Numbers, starts: Numbers, closes: Numbers) -> Numbers:
    """Return the position of the range of the same domain around each."""
    if np.all((parents == NO_RANGE) | (domains[parents] == domains)):
        return parents
    order = np.lexsort((domains, stacks))  # stable: by start within each domain of a stack
    changes = (np.diff(stacks[order], prepend=stacks[order[0]]) != 0) | (
        np.diff(domains[order], prepend=domains[order[0]]) != 0
    )
    same_domain_parents = _find_parents(np.cumsum(changes), starts[order], closes[order])
    outer = np.empty_like(parents)
    outer[order] = np.where(same_domain_parents == NO_RANGE, NO_RANGE, order[same_domain_parents])
    return outer


def _find_paths(parents: Numbers, text_ids: Numbers, names: dict[int, str]) -> tuple[Numbers, Numbers, list[str]]:
    """Return the depth of each range, the position of its path in a list of different paths, and this list."""
    depths, path_ids = np.empty_like(parents), np.empty_like(parents)
    paths = list[str]()
    positions: dict[tuple[int, int], int] = {}
    for position, (parent, text_id) in enumerate(_iterate(parents, text_ids)):
        depth, path_id = 1, NO_RANGE
        if parent != NO_RANGE:
            depth, path_id = int(depths[parent]) + 1, int(path_ids[parent])
        if depth <= LAST_NAMED_DEPTH + 1:
            is_named = depth <= LAST_NAMED_DEPTH
            key = (path_id, text_id if is_named else -1)
            if key not in positions:
                positions[key] = len(paths)
                name = names[text_id] if is_named else "…"
                paths.append(f"{paths[path_id]}/{name}" if depth > 1 else name)
            path_id = positions[key]
        depths[position], path_ids[position] = depth, path_id
    return depths, path_ids, paths


def _iterate(*columns: Numbers) -> Iterator[tuple[int, ...]]:
    """Iterate over the rows of columns, without a Python object for each value at once."""
    for first in range(0, len(columns[0]), _BATCH_ROWS):
        yield from zip(*(column[first : first + _BATCH_ROWS].tolist() for column in columns), strict=True)
