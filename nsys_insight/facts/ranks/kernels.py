"""The kernels of NCCL in a trace, each with the communicator and the message size of the call that launched it."""

from __future__ import annotations

from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from nsys_insight.facts.ranks.payloads import Schemas
from nsys_insight.ingest import several
from nsys_insight.paths import query
from nsys_insight.sql.rows import insert, named, named_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import duckdb

    from nsys_insight.facts.ranks.payloads import Payload

_COLUMNS = ("process_id", "device_id", "gpu_id", "stream_id", "start_ns", "end_ns", "name_id")


def fill(connection: duckdb.DuckDBPyConnection, parts: Sequence[str], prepare: Callable[..., None]) -> None:
    """Fill `facts.nccl_kernels` and `facts.nccl_ranks`.

    Args:
        connection: Where the model is.
        parts: The catalogs in which the traces have theirs.
        prepare: Creates the views and relations that a statement names, in all of them or in those that are `among`.
    """
    for name in ("schemas", "payloads", "kernels"):
        prepare(query(f"facts/nccl/{name}"))
    for part in parts:
        with several.inside(connection, part):
            _fill(connection, partial(prepare, among=[part]))


def _fill(connection: duckdb.DuckDBPyConnection, prepare: Callable[[str], None]) -> None:
    schemas = Schemas(connection.execute(query("facts/nccl/schemas")).fetchall())
    said = list(_said(connection, schemas)) if schemas else []
    if said:
        prepare(query("facts/nccl/launched"))
    kernels = named_rows(connection, query(f"facts/nccl/{'launched' if said else 'kernels'}"))
    called = _called(kernels, said) if said else {}
    insert(
        connection,
        "facts.nccl_kernels",
        (
            {
                **{name: getattr(kernel, name) for name in _COLUMNS},
                "operation": kernel.operation,
                "communicator": None,
                "bytes": None,
                **called.get(at, {}),
            }
            for at, kernel in enumerate(kernels)
        ),
    )
    insert(
        connection,
        "facts.nccl_ranks",
        (
            {
                "process_id": event.process_id, "thread_id": event.thread_id, "start_ns": event.start_ns,
                "end_ns": event.end_ns, "communicator": _id(payload.communicator), "rank": payload.rank,
                "ranks": payload.ranks,
            }
            for event, payload in said
            if payload.rank is not None and payload.ranks is not None
        ),
    )  # fmt: skip


def _said(connection: duckdb.DuckDBPyConnection, schemas: Schemas) -> Iterator[tuple[Any, Payload]]:
    """The NVTX ranges of NCCL with what their payloads say, thread by thread in order of time."""
    cursor = connection.execute(query("facts/nccl/payloads"))
    names = [column[0] for column in cursor.description or ()]
    while rows := cursor.fetchmany(50_000):
        for event in named(names, rows):
            yield event, schemas.read(event.binaryData)


def _called(kernels: Sequence[Any], said: Sequence[tuple[Any, Payload]]) -> dict[int, dict[str, Any]]:
    """Tell which calls each kernel runs: those on its thread since the kernel before it, up to its launch.

    Within ncclGroupStart and ncclGroupEnd several calls become one kernel for each communicator. Their sizes are added
    up where there is but one communicator; with several, it is not known which kernel is whose.
    """
    calls: dict[tuple[int, int], list[tuple[int, str, Payload]]] = {}
    for event, payload in said:
        if payload.bytes is not None:
            calls.setdefault((event.process_id, event.thread_id), []).append((event.start_ns, event.name, payload))
    order = sorted(
        (kernel.process_id, kernel.thread_id, kernel.called_ns, at)
        for at, kernel in enumerate(kernels)
        if kernel.thread_id is not None and kernel.called_ns is not None
    )
    found: dict[int, dict[str, Any]] = {}
    for (process, thread), launched in groupby(order, key=lambda row: row[:2]):
        waiting = iter(calls.get((process, thread), ()))
        following = next(waiting, None)
        for _, _, called_ns, at in launched:
            own = []
            while following is not None and following[0] <= called_ns:
                own.append(following)
                following = next(waiting, None)
            communicators = {payload.communicator for _, _, payload in own}
            if len(communicators) == 1 and None not in communicators:
                found[at] = {
                    "communicator": _id(*communicators),
                    "bytes": sum(payload.bytes or 0 for _, _, payload in own),
                    "operation": kernels[at].operation or _operation({name for _, name, _ in own}),
                }
    return found


def _operation(names: set[str]) -> str | None:
    """What a kernel does that can do anything: what all its calls are named."""
    return min(names).removeprefix("nccl") if len(names) == 1 else None


def _id(communicator: int | None) -> str | None:
    return None if communicator is None else f"{communicator:016x}"
