"""The model as a template: built once, copied into each connection, and not needed for correct answers."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest
from opening import open_trace

import nsys_insight
from nsys_insight import cache_folder
from nsys_insight.model import template, views
from nsys_insight.model.producers import fact_tables

_is_packaged_current = template._is_packaged_current


@pytest.fixture(autouse=True)
def forget_template(monkeypatch):
    """Forget the template that this process has used, and that of the installation."""
    monkeypatch.setattr(template, "_in_use", {})
    monkeypatch.setattr(template, "_is_packaged_current", lambda: False)


@pytest.fixture(scope="module")
def template_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("template") / "model.duckdb"
    template.write_template(file)
    return file


def list_names(connection, kind):
    query = f"SELECT schema_name, {kind}_name FROM duckdb_{kind}s() WHERE NOT internal"
    return set(connection.execute(query).fetchall())


@pytest.mark.slow
def test_a_copy_has_all_views_and_tables():
    with duckdb.connect() as copied, duckdb.connect() as created:
        template.copy_into(copied)
        template.create_model(created)
        for kind in ("view", "table"):
            assert list_names(copied, kind) == list_names(created, kind)
        assert list_names(copied, "view") >= {("main", name) for name in views.documented_views()}
        assert list_names(copied, "view") >= {("facts", name) for name in fact_tables()}
        assert {schema for schema, _ in list_names(copied, "table")} == {"internal"}


@pytest.mark.slow
def test_views_have_their_comments():
    with duckdb.connect() as connection:
        template.copy_into(connection)
        query = "SELECT view_name FROM duckdb_views() WHERE comment IS NULL AND NOT internal AND schema_name = 'main'"
        assert not {name for (name,) in connection.execute(query).fetchall()} & views.documented_views().keys()


@pytest.mark.slow
def test_it_is_built_once(sample, monkeypatch):
    with nsys_insight.open(sample("churn")) as trace:
        trace.answer("top")
    (built_file,) = cache_folder.folder().glob("model-*.duckdb")
    monkeypatch.setattr(template, "create_model", lambda _: pytest.fail("the template exists"))
    monkeypatch.setattr(template, "_in_use", {})
    with nsys_insight.open(sample("churn")) as trace:
        trace.answer("top")
    assert list(cache_folder.folder().glob("model-*.duckdb")) == [built_file]


@pytest.mark.slow
def test_a_damaged_template_is_built_again(sample):
    with nsys_insight.open(sample("churn")) as trace:
        expected = trace.answer("top").rows()
    (built_file,) = cache_folder.folder().glob("model-*.duckdb")
    built_file.write_bytes(b"not a database" * 1000)
    for _ in range(2):
        with nsys_insight.open(sample("churn")) as trace:
            assert trace.answer("top").rows() == expected
    assert built_file.read_bytes()[8:12] == b"DUCK"


def test_on_a_full_disk_the_answer_is_the_same(sample, monkeypatch):
    with open_trace(sample("churn")) as trace:
        expected = trace.answer("top").rows()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(template, "_build", full)
    with nsys_insight.open(sample("churn"), use_cache=False) as trace:
        assert trace.answer("top").rows() == expected


def test_without_the_cache_no_template_is_left(sample, cache):
    with nsys_insight.open(sample("churn"), use_cache=False) as trace:
        trace.answer("top")
    assert not cache.exists()


@pytest.mark.slow
def test_a_user_catalog_has_its_own_template(sample, tmp_path, monkeypatch):
    def families():
        with nsys_insight.open(sample("churn")) as trace:
            return {row.family for row in trace.rows("FROM kernel_names")}

    before = families()
    (tmp_path / "kernel_families.toml").write_text("[[kernels]]\nfamily = 'mine'\npatterns = ['.']\n")
    monkeypatch.setenv("NSYS_INSIGHT_CATALOG_DIR", str(tmp_path))
    assert families() == {"mine"} != before


class TestPackagedTemplate:
    """An installation brings the template, so the first command builds none."""

    @pytest.fixture
    def package(self, tmp_path, monkeypatch, template_file):
        """Give an installation of links to the package's folders, with a template of its own."""
        monkeypatch.setattr(template, "_is_packaged_current", _is_packaged_current)
        for name in ("facts", "ingest", "model"):
            (tmp_path / name).symlink_to(template.package_folder() / name)
        (tmp_path / "template").mkdir()
        monkeypatch.setattr(template, "package_folder", lambda: tmp_path)
        for function in (template._digest_package, template._is_packaged_current):
            function.cache_clear()
        shutil.copy(template_file, tmp_path / template.PACKAGED_FILE)
        # Tests above build one.
        monkeypatch.setattr(template, "_build", Path.touch)
        yield tmp_path
        for function in (template._digest_package, template._is_packaged_current):
            function.cache_clear()

    @pytest.mark.parametrize("has_times", [True, False])
    def test_it_is_used_with_and_without_a_cache(self, package, has_times):
        (package / template.PACKAGED_MANIFEST).write_text(template.describe_package(has_times=has_times))
        for use_cache in (True, False):
            assert template._find_template(use_cache=use_cache) == package / template.PACKAGED_FILE
        with duckdb.connect() as copied:
            template.copy_into(copied)
            assert list_names(copied, "view") >= {("main", name) for name in views.documented_views()}
        assert not list(cache_folder.folder().glob("model-*.duckdb"))

    @pytest.mark.parametrize("text", ["", "{}", "[]", '{"digest": "0", "has_times": true}'])
    def test_one_of_other_files_is_not_used(self, package, text):
        (package / template.PACKAGED_MANIFEST).write_text(text)
        assert template._find_template(use_cache=True).parent == cache_folder.folder()

    def test_a_catalog_of_the_user_needs_a_template_of_its_own(self, package, tmp_path, monkeypatch):
        (package / template.PACKAGED_MANIFEST).write_text(template.describe_package(has_times=False))
        monkeypatch.setattr(template, "user_folder", lambda _: tmp_path / "mine")
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "kernel_families.toml").write_text("")
        assert template._find_template(use_cache=True).parent == cache_folder.folder()
