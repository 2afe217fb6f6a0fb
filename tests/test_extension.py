"""The extension that reads SQLite files is DuckDB's own: its signature is checked once for each file."""

from __future__ import annotations

import shutil

import duckdb
import pytest

from nsys_insight import cache_folder
from nsys_insight.errors import ToolError
from nsys_insight.ingest import database, extension

pytestmark = pytest.mark.skipif(extension.find_scanner() is None, reason="there is no extension for this platform")


@pytest.fixture(autouse=True)
def forget_checked_files(monkeypatch):
    monkeypatch.setattr(extension, "_checked", set())


@pytest.fixture
def extension_copy(tmp_path):
    """Return a copy of the extension, which a test can change."""
    return shutil.copy(extension.find_scanner(), tmp_path) and tmp_path / extension.find_scanner().name


def change(path):
    """Change a byte far from the signature at the end.

    The file is replaced, because this process may have loaded the first one.
    """
    content = bytearray(path.read_bytes())
    position = content.index(b"sqlite_attach\0")
    content[position] ^= 1
    other = path.with_name("other")
    other.write_bytes(content)
    other.replace(path)


def load(path, **options):
    with database.connect() as connection:
        extension.load(connection, path, **options)
        query = "SELECT loaded FROM duckdb_extensions() WHERE extension_name = 'sqlite_scanner'"
        return connection.execute(query).fetchall() == [(True,)]


def is_signature_checked(monkeypatch, path, **options):
    """Load the extension as a new process would; return whether its signature is checked."""
    extension._checked.clear()
    statements = []
    with database.connect() as connection:

        class RecordingConnection:
            def execute(self, sql):
                statements.append(sql)
                return connection.execute(sql)

        extension.load(RecordingConnection(), path, **options)
    return any("allow_unsigned_extensions = false" in sql for sql in statements)


def test_the_installed_extension_is_loaded():
    assert load(extension.find_scanner())


def test_a_changed_extension_is_refused(extension_copy):
    change(extension_copy)
    with pytest.raises(ToolError, match="is not DuckDB's own: its signature is missing or invalid") as error:
        load(extension_copy)
    assert error.value.hint.endswith(f"duckdb-extension-sqlite-scanner=={duckdb.__version__}")
    assert not list(cache_folder.folder().iterdir())


def test_the_signature_is_checked_once(extension_copy, monkeypatch):
    assert is_signature_checked(monkeypatch, extension_copy)
    assert not is_signature_checked(monkeypatch, extension_copy)


@pytest.mark.slow
def test_the_signature_is_checked_again_after_a_change(extension_copy, monkeypatch):
    assert is_signature_checked(monkeypatch, extension_copy)
    change(extension_copy)
    with pytest.raises(ToolError):
        is_signature_checked(monkeypatch, extension_copy)


def test_the_signature_is_checked_each_time_without_the_cache(extension_copy, monkeypatch):
    assert is_signature_checked(monkeypatch, extension_copy, use_cache=False)
    assert is_signature_checked(monkeypatch, extension_copy, use_cache=False)
    assert not cache_folder.location().exists()
