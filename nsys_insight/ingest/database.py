"""Bring nsys exports into DuckDB: a connection, and the files attached to it."""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING

from nsys_insight.errors import UsageError
from nsys_insight.ingest.limits import Limits
from nsys_insight.sql.parser import take_connection
from nsys_insight.sql.quoting import literal

if TYPE_CHECKING:
    import duckdb

DEFAULT = Limits()
_CONNECTIONS = count(1)


def spill_folder() -> str:
    """Where answers of this process are handed over from, and beside which queries spill: a folder not yet made."""
    import os
    import tempfile

    return os.path.join(tempfile.gettempdir(), f"nsys-insight-{os.getpid()}")  # noqa: PTH118 - pathlib would cost start-up time


def connect(limits: Limits = DEFAULT) -> duckdb.DuckDBPyConnection:
    """Open an in-memory DuckDB, which spills to a folder of its own among the temporary ones, never beside a trace."""
    import duckdb

    connection = take_connection()
    memory, threads = limits.settled
    if not re.fullmatch(r"\s*[\d.]+\s*([KMGT]i?)?B?\s*", memory, re.IGNORECASE):
        raise _no_size(memory)
    try:
        connection.execute(
            # Row order is of no meaning in SQL; giving it up lets the extension scan a SQLite file in parallel.
            f"""SET preserve_insertion_order = false;
                SET threads = {threads};
                SET memory_limit = {literal(memory)};
                -- An ASOF join whose left side DuckDB takes to be small compares all with all, and it guesses badly.
                SET asof_loop_join_threshold = 0;
                -- Two databases that spill to one folder give their files the same names, and read each other's.
                SET temp_directory = {literal(f"{spill_folder()}-{next(_CONNECTIONS)}")}"""
        )
    except duckdb.Error as error:
        raise _no_size(memory, f": {error}") from None
    return connection


def _no_size(memory: str, why: str = "") -> UsageError:
    return UsageError(f"--memory cannot be {memory!r}{why}", "give a size such as 512MB or 4GB")
