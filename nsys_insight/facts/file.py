"""The facts of a big trace, in a file: they need not fit the memory, and the next question finds them."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from functools import cache
from typing import TYPE_CHECKING

from nsys_insight.errors import TraceError
from nsys_insight.ingest import cache_entries, cache_folder
from nsys_insight.ingest.database import STORAGE
from nsys_insight.model.views import macro_statements
from nsys_insight.paths import package_folder, queries_folder
from nsys_insight.sql.quoting import identifier, literal

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    import duckdb


def create_schemas(connection: duckdb.DuckDBPyConnection, *names: str) -> None:
    """Create schemas, but for those in whose place a database of the name is attached (`FactsFile`)."""
    attached = {name for (name,) in connection.execute("SELECT database_name FROM duckdb_databases()").fetchall()}
    for name in names:
        if name not in attached:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {name}")


class FactsFile:
    """Databases for facts and for what is needed on the way, attached as `facts` and `internal`.

    They are of `export`, and stay in the cache folder if they are `lasting`. `kept` are the tables of facts that are
    there; `facts` shows them as views.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, export: Path, *, lasting: bool) -> None:
        """Attach them; they go when the process ends, unless `keep` is called.

        Without `lasting`, or where no cache folder can be written to, nothing is kept and nothing is looked up. The
        export must not have been changed when `keep` is called with tables.

        Raises:
            OSError: There is no folder for them, or no room in it.
        """
        import duckdb

        self.export, self.lasting = export, lasting
        self._key = cache_folder.key(export, duckdb.__version__, definitions())
        self._files = ExitStack()
        try:
            self._make(lasting=lasting)
        except OSError:
            self.lasting = False
            self._make(lasting=False)
        attached: list[str] = []
        try:
            for name, path in (("facts", self._path), ("internal", self.internal)):
                connection.execute(f"ATTACH {literal(str(path))} AS {name} {STORAGE}")
                attached.append(name)
        except duckdb.IOException as error:
            for name in attached:
                connection.execute(f"DETACH {name}")
            self._files.close()
            raise OSError(str(error)) from None
        self.kept = frozenset[str]()
        self._source = self._attached_before(connection) if self.lasting else None
        if self._source:
            self.kept = frozenset(_names(connection, "table", "kept"))
            for table in self.kept:
                connection.execute(f"CREATE VIEW facts.{table} AS FROM kept.{table}")

    def _make(self, *, lasting: bool) -> None:
        self._folder = cache_folder.folder(lasting=lasting)
        self._path = self._files.enter_context(cache_folder.working(self._folder / "facts.duckdb"))

    @property
    def internal(self) -> Path:
        """Where what is needed on the way is, which goes with `keep`."""
        return self._path.with_name("internal.duckdb")

    def entry(self, name: str) -> Path:
        """Where in the cache folder something else is kept that depends on the trace and what facts are."""
        return self._folder / f"{self._key}-{name}"

    def keep(self, tables: AbstractSet[str]) -> None:
        """Leave tables of facts in the cache folder, when the connection is closed; what was kept before stays."""
        import duckdb

        if self.lasting and not tables <= self.kept:
            with suppress(OSError, duckdb.Error, TraceError):
                self._publish(tables)
        self._files.close()

    def _publish(self, tables: AbstractSet[str]) -> None:
        import duckdb

        with duckdb.connect(self._path) as connection:
            shown = set(_names(connection, "view", "facts"))
            if self._source:
                connection.execute(f"ATTACH {literal(str(self._source))} AS kept (READ_ONLY)")
            for table in self.kept & (shown | (self.kept - tables)):
                connection.execute(f"DROP {'VIEW' if table in shown else 'TABLE'} IF EXISTS {identifier(table)}")
                connection.execute(f"CREATE TABLE {identifier(table)} AS FROM kept.{identifier(table)}")
            for table in set(_names(connection, "table", "facts")) - tables - self.kept:
                connection.execute(f"DROP TABLE {identifier(table)}")
        target = self.entry(f"facts-{len(tables | self.kept):03}.duckdb")
        with cache_entries.making(target, "facts", self.export) as path:
            self._path.replace(path)
        if self._source:
            cache_entries.discard(self._source)

    def _attached_before(self, connection: duckdb.DuckDBPyConnection) -> Path | None:
        import duckdb

        source = self._kept_before()
        try:
            if source:
                connection.execute(f"ATTACH {literal(str(source))} AS kept (READ_ONLY)")
        except duckdb.Error:  # it is damaged, or another process has just put one with more in its place
            return None
        return source

    def concerns(self, error: Exception) -> bool:
        """Tell whether an error is about these files: their disk may be full, or something may have removed them."""
        return str(self._path.parent) in str(error)

    def _kept_before(self) -> Path | None:
        """The file with most facts that there is."""
        files = sorted(self._folder.glob(f"{self._key}-facts-*.duckdb"), reverse=True)
        return next(filter(cache_entries.use, files), None)


def is_kept(export: Path) -> bool:
    """Tell whether facts of a trace are in the cache folder."""
    import duckdb

    key = cache_folder.key(export, duckdb.__version__, definitions())
    return any(True for _ in cache_folder.location().glob(f"{key}-facts-*.duckdb"))


@cache
def definitions() -> str:
    """Stand for all that says what facts are: facts that were found otherwise are not to be used."""
    folders = [queries_folder() / name for name in ("catalog", "facts", "model")]
    files = [file for folder in folders for file in folder.rglob("*.*")]
    files += (package_folder() / "facts").rglob("*.py")
    return cache_folder.digest(*(path.read_bytes() for path in sorted(files)), *macro_statements())


def _names(connection: duckdb.DuckDBPyConnection, kind: str, database: str) -> Iterable[str]:
    found = f"SELECT {kind}_name FROM duckdb_{kind}s() WHERE database_name = {literal(database)} AND NOT internal"
    return [name for (name,) in connection.execute(found).fetchall()]
