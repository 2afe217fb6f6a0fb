#!/usr/bin/env bash
# Question: what does DuckDB's SQLite scanner return for the expressions of a view in a SQLite file?
# Guess:    what SQLite returns, as BLOB, because an expression has no declared type.
# Seen:     duckdb 1.5.5, duckdb-extension-sqlite-scanner 1.5.5. The text of the view runs in DuckDB, with DuckDB's
#           meaning: 7 / 2 is 3.5 (SQLite: 3), LIKE minds the case, typeof() has other names, max(x, 3) is one row with
#           a list (SQLite: a value per row). If the view has a function that DuckDB does not know (total), SQLite runs
#           it, and the column is text.
# Meets:    whoever reads views of an application's SQLite file by DuckDB: other numbers and other rows, without an
#           error.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq duckdb==1.5.5 duckdb-extension-sqlite-scanner==1.5.5
venv/bin/python - <<'EOF'
import sqlite3
from pathlib import Path

import duckdb
import duckdb_extension_sqlite_scanner

views = {
    "half": "SELECT x / 2 FROM t",
    "alike": "SELECT count(*) FROM t WHERE s LIKE 'b'",
    "kind": "SELECT DISTINCT typeof(x) FROM t",
    "largest": "SELECT max(x, 3) FROM t",
    "total": "SELECT total(x) FROM t",
}
sqlite = sqlite3.connect("a.db")
sqlite.execute("CREATE TABLE t (x INTEGER, s TEXT)")
sqlite.executemany("INSERT INTO t VALUES (?, ?)", [(1, "a"), (2, "B"), (7, "b")])
for name, query in views.items():
    sqlite.execute(f'CREATE VIEW "{name}" (v) AS {query}')
sqlite.commit()

extension = next(Path(duckdb_extension_sqlite_scanner.__path__[0]).rglob("*.duckdb_extension"))
duck = duckdb.connect()
duck.execute(f"LOAD '{extension}'")
duck.execute("ATTACH 'a.db' AS s (TYPE sqlite, READ_ONLY)")
seen = {}
for name in views:
    query = f'SELECT * FROM {{}}"{name}"'
    seen[name] = [
        [row[0] for row in connection.execute(query.format(prefix)).fetchall()]
        for connection, prefix in ((sqlite, ""), (duck, "s."))
    ]
print("SQLite against DuckDB 1.5.5:", seen)
assert seen == {
    "half": [[0, 1, 3], [0.5, 1.0, 3.5]],
    "alike": [[2], [1]],
    "kind": [["integer"], ["BIGINT"]],
    "largest": [[3, 3, 7], [[7, 2, 1]]],
    "total": [[10.0], ["10.0"]],
}
EOF
