"""The model as a template: made once, copied into each connection, and never needed for correctness."""

from __future__ import annotations

import duckdb
import pytest

import nsys_insight
from nsys_insight.ingest import cache_folder
from nsys_insight.model import template, views
from nsys_insight.model.producers import every_table


@pytest.fixture(autouse=True)
def unused(monkeypatch):
    """Forget the template that this process has used."""
    monkeypatch.setattr(template, "_in_use", {})


def names(connection, kind):
    found = f"SELECT schema_name, {kind}_name FROM duckdb_{kind}s() WHERE NOT internal"
    return set(connection.execute(found).fetchall())


@pytest.mark.slow
def test_a_copy_has_what_the_files_create():
    with duckdb.connect() as copied, duckdb.connect() as created:
        template.copy_into(copied)
        template.create(created)
        for kind in ("view", "table"):
            assert names(copied, kind) == names(created, kind)
        assert names(copied, "view") >= {("main", name) for name in views.documented()}
        assert names(copied, "view") >= {("facts", name) for name in every_table()}
        assert not names(copied, "table")


@pytest.mark.slow
def test_views_have_their_comments():
    with duckdb.connect() as connection:
        template.copy_into(connection)
        without = "SELECT view_name FROM duckdb_views() WHERE comment IS NULL AND NOT internal AND schema_name = 'main'"
        assert not {name for (name,) in connection.execute(without).fetchall()} & views.documented().keys()


@pytest.mark.slow
def test_it_is_made_once(sample, monkeypatch):
    with nsys_insight.open(sample("churn")) as trace:
        trace.answer("top")
    (made,) = cache_folder.folder().glob("model-*.duckdb")
    monkeypatch.setattr(template, "create", lambda _: pytest.fail("it is there"))
    monkeypatch.setattr(template, "_in_use", {})
    with nsys_insight.open(sample("churn")) as trace:
        trace.answer("top")
    assert list(cache_folder.folder().glob("model-*.duckdb")) == [made]


@pytest.mark.slow
def test_one_that_is_damaged_is_made_anew(sample):
    with nsys_insight.open(sample("churn")) as trace:
        expected = trace.answer("top").rows()
    (made,) = cache_folder.folder().glob("model-*.duckdb")
    made.write_bytes(b"not a database" * 1000)
    for _ in range(2):
        with nsys_insight.open(sample("churn")) as trace:
            assert trace.answer("top").rows() == expected
    assert made.read_bytes()[8:12] == b"DUCK"


def test_without_room_for_it_the_answer_is_the_same(sample, monkeypatch):
    with nsys_insight.open(sample("churn")) as trace:
        expected = trace.answer("top").rows()
    monkeypatch.setattr(template, "_in_use", {})

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(template, "_make", full)
    with nsys_insight.open(sample("churn"), use_cache=False) as trace:
        assert trace.answer("top").rows() == expected


def test_without_the_cache_it_is_not_left_there(sample, cache):
    with nsys_insight.open(sample("churn"), use_cache=False) as trace:
        trace.answer("top")
    assert not cache.exists()


@pytest.mark.slow
def test_it_is_another_one_with_a_catalog_of_the_user_s_own(sample, tmp_path, monkeypatch):
    def family():
        with nsys_insight.open(sample("churn")) as trace:
            return {row.family for row in trace.rows("FROM kernel_names")}

    before = family()
    (tmp_path / "kernel_families.toml").write_text("[[kernels]]\nfamily = 'mine'\npatterns = ['.']\n")
    monkeypatch.setenv("NSYS_INSIGHT_CATALOG_DIR", str(tmp_path))
    assert family() == {"mine"} != before
