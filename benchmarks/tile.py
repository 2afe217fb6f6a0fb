"""Tile a real nsys export to any size, on its real schema, for benchmarks.

    python benchmarks/tile.py sample_traces/decode_eager.sqlite big.sqlite --times 1000

Every copy is moved later in time by the length of the trace and gets correlation ids and call chains of its own, so
that joins, gaps and steps look as they would in one long capture: nsys writes a chain for each call, also where two are
alike. ``--processes`` and ``--streams`` spread the copies over several processes and streams, which run at the same
time.
"""

from __future__ import annotations

import argparse
import shutil
import sqlite3
from pathlib import Path

TIMES = {"start", "end", "timestamp", "rawTimestamp"}
PER_COPY = {"correlationId", "gridId", "eventSyncId"}
# The columns with the ids of call chains, and by how much each copy's are moved: a sample has the id of its chain.
CHAINS = (
    ("CUPTI_ACTIVITY_KIND_RUNTIME.callchainId", "CUDA_CALLCHAINS.id"),
    ("OSRT_API.callchainId", "OSRT_CALLCHAINS.id"),
    ("COMPOSITE_EVENTS.id", "SAMPLING_CALLCHAINS.id"),
)
PROCESS_IDS = {"globalPid", "globalTid", "endGlobalTid"}
# What is not an event is kept once.
KEPT = (
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


def event_tables(db: sqlite3.Connection) -> list[str]:
    names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    return [name for name in names if not name.startswith(KEPT)]


def columns(db: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]


def extent(db: sqlite3.Connection, table: str, column: str) -> tuple[int, int]:
    low, high = db.execute(f'SELECT min("{column}"), max("{column}") FROM "{table}"').fetchone()
    return low or 0, high or 0


def tile(source: Path, target: Path, times: int, processes: int = 1, streams: int = 1) -> None:
    """Write `target` with the events of `source` repeated `times` times."""
    shutil.copyfile(source, target)
    target.chmod(0o644)
    db = sqlite3.connect(target)
    db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -200000;")
    chains = {place.partition(".")[0] for pair in CHAINS for place in pair}
    tables = [t for t in event_tables(db) if t in chains or TIMES & set(columns(db, t))]
    event_times = [
        extent(db, t, c) for t in tables if t.startswith("CUPTI") for c in ("start", "end") if c in columns(db, t)
    ]
    period = max(high for _, high in event_times) - min(low for low, high in event_times) + 100_000
    ids = {
        c: max(extent(db, t, c)[1] for t in tables if c in columns(db, t)) + 1
        for c in PER_COPY
        if any(c in columns(db, t) for t in tables)
    }
    apart = {}
    for places in CHAINS:
        there = [(t, c) for t, c in (place.split(".") for place in places) if c in columns(db, t)]
        apart.update(dict.fromkeys(there, max((extent(db, *place)[1] for place in there), default=0) + 1))
    # Copies of different processes and streams share a place in time: with 2 of each, every 4 copies run at once.
    lanes = processes * streams
    db.execute(
        "CREATE TEMP TABLE copy AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)"
        " SELECT i FROM n",
        (times,),
    )
    for table in tables:
        values = []
        for column in columns(db, table):
            value = f't."{column}"'
            if column in TIMES:
                value += f" + (copy.i / {lanes}) * {period}"
            elif (table, column) in apart:
                value += f" + copy.i * {apart[table, column]}"
            elif column in ids:
                value += f" + copy.i * {ids[column]}"
            elif column in PROCESS_IDS:
                value += f" + ((copy.i % {processes}) << 24)"
            elif column == "streamId":
                value += f" + 1000 * ((copy.i / {processes}) % {streams})"
            values.append(value)
        # A stored table of the original rows: an INSERT that reads what it writes would not end.
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
