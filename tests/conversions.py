"""Conversions with few facts: computing all takes seconds, and most tests are about other parts of the output."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from nsys_insight.convert import convert
from nsys_insight.facts.store import Facts
from nsys_insight.fleet import task
from nsys_insight.model import views

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def without_most_facts() -> Iterator[None]:
    """Shorten conversions in the block.

    `convert` writes one view to a folder, and `fleet` one fact of each trace. The DuckDB file of `convert` or `explore`
    has no facts.
    """
    find_facts, all_facts = Facts.find, task.fact_tables()
    few_facts = {name: fact for name, fact in all_facts.items() if name == "steps" or fact.is_cross_rank}
    one_view: dict[str, Any] = {**vars(views), "documented_views": lambda **_: {"kernels": None}}

    def find_few(facts: Facts, queries: list[str], *options: Any) -> None:
        # Only a DuckDB file asks for the facts of all views at once.
        if len(queries) < len(all_facts):
            find_facts(facts, queries, *options)

    with (
        patch.object(Facts, "find", find_few),
        patch.object(convert, "views", SimpleNamespace(**one_view)),
        patch.object(task, "fact_tables", lambda: few_facts),
    ):
        yield
