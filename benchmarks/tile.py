"""Tile a real nsys export to any size, on its real schema, for benchmarks.

    python benchmarks/tile.py sample_traces/decode_eager.sqlite big.sqlite --times 1000

Every copy is shifted in time by the length of the trace. It gets its own correlation ids and call stacks, so that
joins, gaps and steps look like those of one long capture: nsys writes a call stack for each call, even for equal ones.
``--processes`` and ``--streams`` spread the copies over several processes and streams, which run at the same time.
"""

from __future__ import annotations

import argparse
import shutil
import sqlite3
from pathlib import Path

TIME_COLUMNS = {"start", "end", "timestamp", "rawTimestamp"}
ID_COLUMNS = {"correlationId", "gridId", "eventSyncId"}
# The columns with the ids of call stacks. Columns in one line share their ids: a sample has the id of its stack.
CHAINS = (
    ("CUPTI_ACTIVITY_KIND_RUNTIME.callchainId", "CUDA_CALLCHAINS.id"),
    ("OSRT_API.callchainId", "OSRT_CALLCHAINS.id"),
    ("COMPOSITE_EVENTS.id", "SAMPLING_CALLCHAINS.id"),
)
PROCESS_IDS = {"globalPid", "globalTid", "endGlobalTid"}
# Prefixes of tables without events. They are copied once.
COPIED_TABLES = (
    "ENUM_",
    "META_",
    "EXPORT_",
    "TARGET_",
    "StringIds",
    "ANALYSIS",
    "PROCESSES",
    "Process",
    "ThreadNames",
    "sqlite_",
)


def list_event_tables(db: sqlite3.Connection) -> list[str]:
    names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    return [name for name in names if not name.startswith(COPIED_TABLES)]


def list_columns(db: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]


def find_range(db: sqlite3.Connection, table: str, column: str) -> tuple[int, int]:
    low, high = db.execute(f'SELECT min("{column}"), max("{column}") FROM "{table}"').fetchone()
    return low or 0, high or 0


def tile(source: Path, target: Path, times: int, processes: int = 1, streams: int = 1) -> None:
    """Write `target` with the events of `source` repeated `times` times."""
    shutil.copyfile(source, target)
    target.chmod(0o644)
    db = sqlite3.connect(target)
    db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -200000;")
    stack_tables = {column.partition(".")[0] for pair in CHAINS for column in pair}
    tables = [t for t in list_event_tables(db) if t in stack_tables or TIME_COLUMNS & set(list_columns(db, t))]
    event_times = [
        find_range(db, t, c)
        for t in tables
        if t.startswith("CUPTI")
        for c in ("start", "end")
        if c in list_columns(db, t)
    ]
    period = max(high for _, high in event_times) - min(low for low, high in event_times) + 100_000
    ids = {
        c: max(find_range(db, t, c)[1] for t in tables if c in list_columns(db, t)) + 1
        for c in ID_COLUMNS
        if any(c in list_columns(db, t) for t in tables)
    }
    id_offsets = {}
    for chain_columns in CHAINS:
        existing = [(t, c) for t, c in (name.split(".") for name in chain_columns) if c in list_columns(db, t)]
        id_offsets.update(
            dict.fromkeys(existing, max((find_range(db, *column)[1] for column in existing), default=0) + 1)
        )
    # Copies on different processes and streams share a time slot: with 2 of each, 4 copies run at once.
    lanes = processes * streams
    db.execute(
        "CREATE TEMP TABLE copy AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)"
        " SELECT i FROM n",
        (times,),
    )
    for table in tables:
        values = []
        for column in list_columns(db, table):
            value = f't."{column}"'
            if column in TIME_COLUMNS:
                value += f" + (copy.i / {lanes}) * {period}"
            elif (table, column) in id_offsets:
                value += f" + copy.i * {id_offsets[table, column]}"
            elif column in ids:
                value += f" + copy.i * {ids[column]}"
            elif column in PROCESS_IDS:
                value += f" + ((copy.i % {processes}) << 24)"
            elif column == "streamId":
                value += f" + 1000 * ((copy.i / {processes}) % {streams})"
            values.append(value)
        # A temporary table of the original rows: an INSERT that reads its own table would not end.
        db.execute(f'CREATE TEMP TABLE t AS SELECT * FROM "{table}"')
        if times > 1:
            db.execute(f'INSERT INTO "{table}" SELECT {", ".join(values)} FROM copy CROSS JOIN t')
        db.execute("DROP TABLE temp.t")
    db.commit()
    db.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--streams", type=int, default=1)
    arguments = parser.parse_args()
    tile(arguments.source, arguments.target, arguments.times, arguments.processes, arguments.streams)


if __name__ == "__main__":
    main()
