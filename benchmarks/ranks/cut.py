"""Keep the first steps of an export, for a small test file:  cut.py IN.sqlite OUT.sqlite STEPS."""

import shutil
import sqlite3
import sys
from contextlib import closing


def main(source: str, target: str, steps: int) -> None:
    shutil.copyfile(source, target)
    with closing(sqlite3.connect(target)) as database:
        (end,) = database.execute(
            """SELECT max(n.end) FROM (
                SELECT n.end FROM NVTX_EVENTS AS n LEFT JOIN StringIds AS s ON s.id = n.textId
                WHERE coalesce(n.text, s.value) = 'step' ORDER BY n.start LIMIT ?
            ) AS n""",
            (steps,),
        ).fetchone()
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            columns = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
            if table == "NVTX_EVENTS" or (table.startswith("CUPTI_ACTIVITY_KIND") and "start" in columns):
                database.execute(f"DELETE FROM {table} WHERE start > ?", (end,))
        database.commit()
        database.execute("VACUUM")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
