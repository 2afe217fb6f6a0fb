"""The extension that reads SQLite files is DuckDB's own: its signature is checked once for each file."""

from __future__ import annotations

import shutil

import duckdb
import pytest

from nsys_insight.errors import ToolError
from nsys_insight.ingest import cache_folder, database, extension

pytestmark = pytest.mark.skipif(extension.scanner() is None, reason="there is no extension for this platform")


@pytest.fixture(autouse=True)
def nothing_checked(monkeypatch):
    monkeypatch.setattr(extension, "_checked", set())


@pytest.fixture
def copy(tmp_path):
    """The extension in another place, where it can be changed."""
    return shutil.copy(extension.scanner(), tmp_path) and tmp_path / extension.scanner().name


def change(path):
    """Change a byte far from the signature at the end, in another file: this process may have the first one loaded."""
    content = bytearray(path.read_bytes())
    at = content.index(b"sqlite_attach\0")
    content[at] ^= 1
    other = path.with_name("other")
    other.write_bytes(content)
    other.replace(path)


def load(path, **options):
    with database.connect() as connection:
        extension.load(connection, path, **options)
        asked = "SELECT loaded FROM duckdb_extensions() WHERE extension_name = 'sqlite_scanner'"
        return connection.execute(asked).fetchall() == [(True,)]


def checks(monkeypatch, path, **options):
    """Whether the signature is checked, as a process that has not yet done so loads it."""
    extension._checked.clear()
    said = []
    with database.connect() as connection:

        class Listening:
            def execute(self, sql):
                said.append(sql)
                return connection.execute(sql)

        extension.load(Listening(), path, **options)
    return any("allow_unsigned_extensions = false" in sql for sql in said)


def test_the_one_that_is_installed_is_loaded():
    assert load(extension.scanner())


def test_one_that_was_changed_is_refused(copy):
    change(copy)
    with pytest.raises(ToolError, match="is not DuckDB's own: its signature is missing or invalid") as told:
        load(copy)
    assert told.value.hint.endswith(f"duckdb-extension-sqlite-scanner=={duckdb.__version__}")
    assert not list(cache_folder.folder().iterdir())


def test_it_is_checked_once(copy, monkeypatch):
    assert checks(monkeypatch, copy)
    assert not checks(monkeypatch, copy)


@pytest.mark.slow
def test_again_where_it_was_changed_since(copy, monkeypatch):
    assert checks(monkeypatch, copy)
    change(copy)
    with pytest.raises(ToolError):
        checks(monkeypatch, copy)


def test_each_time_where_nothing_is_to_be_left(copy, monkeypatch):
    assert checks(monkeypatch, copy, lasting=False)
    assert checks(monkeypatch, copy, lasting=False)
    assert not cache_folder.location().exists()
