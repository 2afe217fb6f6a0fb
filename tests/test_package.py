"""What is installed with the package: supported versions of DuckDB, and types for editors."""

from __future__ import annotations

import sys
import tomllib
from importlib.resources import files
from pathlib import Path

import duckdb
import pytest
from packaging.requirements import Requirement

import nsys_insight
from nsys_insight import extras
from nsys_insight.errors import ToolError
from nsys_insight.sql import parser

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


TESTED = ["1.5.2", "1.5.5", "1.5.6", "1.5.10", "2.0.1", "2.0.2"]
UNTESTED = ["1.4.4", "1.5.0", "1.5.1", "1.6.0", "2.0.0", "2.1.0"]


@pytest.mark.parametrize("version", TESTED)
def test_a_tested_version_of_duckdb_is_used(version):
    assert parser.explain_unsupported(version) is None


@pytest.mark.parametrize("version", UNTESTED)
def test_an_untested_version_is_refused_with_a_hint(version, monkeypatch):
    monkeypatch.setattr(duckdb, "__version__", version)
    with pytest.raises(ToolError, match=f"DuckDB {version} is installed") as error:
        parser._connect()
    assert "in its own environment" in error.value.hint
    assert f"'duckdb=={parser._NEWEST}' 'duckdb-extension-sqlite-scanner=={parser._NEWEST}'" in error.value.hint


@pytest.mark.skipif(not PROJECT.is_file(), reason="the project's files are not beside the tests")
def test_extras_have_upper_bounds():
    """cryptography has a new major version every few months, and keeps what is used of it."""
    extras = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    requirements = {text for name, texts in extras.items() if name != "dev" for text in texts}
    assert {text for text in requirements if "<" not in text} == {"cryptography>=44"}


@pytest.mark.skipif(not PROJECT.is_file(), reason="the project's files are not beside the tests")
def test_the_required_versions_are_the_tested_ones():
    dependencies = tomllib.loads(PROJECT.read_text())["project"]["dependencies"]
    ranges = {item.name: item.specifier for item in map(Requirement, dependencies)}
    assert [version for version in TESTED + UNTESTED if version in ranges["duckdb"]] == TESTED
    # Each version of the extension requires the DuckDB of the same number.
    assert parser._NEWEST in ranges["duckdb-extension-sqlite-scanner"]


@pytest.mark.skipif(not PROJECT.is_file(), reason="the project's files are not beside the tests")
def test_no_later_major_version_of_a_dependency_is_installed():
    dependencies = tomllib.loads(PROJECT.read_text())["project"]["dependencies"]
    assert [text for text in dependencies if "<" not in text.partition(";")[0]] == []


def test_editors_see_the_types():
    assert files(nsys_insight).joinpath("py.typed").is_file()


def test_an_extra_is_added_to_the_environment_that_runs(monkeypatch):
    bin_folder = Path(sys.executable).parent
    monkeypatch.setenv("PATH", str(bin_folder))
    assert extras.write_install_command("mcp") == "python3 -m pip install 'nsys-insight[mcp]'"
    monkeypatch.setenv("PATH", "/nowhere")  # as in an environment of pipx
    assert extras.write_install_command("mcp") == f"{sys.executable} -m pip install 'nsys-insight[mcp]'"
    monkeypatch.setattr(extras, "find_spec", lambda _: None)  # as in one of uv
    assert extras.write_install_command("mcp") == f"uv pip install --python {sys.prefix} 'nsys-insight[mcp]'"
