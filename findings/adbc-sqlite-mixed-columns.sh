#!/usr/bin/env bash
# Question: what types does ADBC's SQLite driver give to a column of mixed values?
# Guess:    an error for a BLOB and a text in one column; nothing was guessed of doubles with a text.
# Seen:     adbc-driver-sqlite 1.13.0, pyarrow 26.0.1. A text in the first 1024 rows turns the column into text. A
#           double becomes text with seven digits: 12345678.9 is "1.234568e+07". An integer stays exact, unless a double
#           stands before the text: then 2^53 + 1 is "9.007199e+15". A BLOB makes all of it binary, without a word:
#           numbers are their digits. A text after the first 1024 rows raises an error.
# Meets:    whoever reads a column of settings or values (SQLite stores a type with each value): one "n/a" costs digits
#           of all numbers before it.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq adbc-driver-sqlite==1.13.0 pyarrow==26.0.1
venv/bin/python - <<'EOF'
import sqlite3

import adbc_driver_sqlite.dbapi


def read(*values):
    with sqlite3.connect("a.db") as connection:
        connection.execute("DROP TABLE IF EXISTS t")
        connection.execute("CREATE TABLE t (x)")
        connection.executemany("INSERT INTO t VALUES (?)", [(value,) for value in values])
    connection.close()
    with adbc_driver_sqlite.dbapi.connect("a.db") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT x FROM t")
        try:
            return cursor.fetch_arrow_table()["x"].to_pylist()
        except OSError as error:
            return "error" if "Type mismatch" in str(error) else str(error)


big = 2**53 + 1
seen = [
    read(12345678.9, "n/a"),
    read(big, "n/a"),
    read(big, 0.5, "n/a"),
    read(7, "n/a", b"\1"),
    read(*range(2000), "n/a"),
]
print("adbc-driver-sqlite 1.13.0:", seen)
assert seen == [
    ["1.234568e+07", "n/a"],
    ["9007199254740993", "n/a"],
    ["9.007199e+15", "5.000000e-01", "n/a"],
    [b"7", b"n/a", b"\1"],
    "error",
]
EOF
