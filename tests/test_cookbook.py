"""Every query of the cookbook runs; common questions give the numbers of hand-written SQL with shorter queries."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import nsys_insight

REPOSITORY = Path(__file__).parents[1]
EAGER = REPOSITORY / "sample_traces" / "decode_eager.sqlite"
CHURN = REPOSITORY / "sample_traces" / "churn.sqlite"
RECIPES = dict(
    re.findall(
        r"^## (.+?)\n.*?```sql\n(.*?)```",
        (REPOSITORY / "docs" / "cookbook.md").read_text(encoding="utf-8"),
        re.DOTALL | re.MULTILINE,
    )
)
EMPTY = {"Which API calls failed?"}

TOP = """
    SELECT s.value, count(*), sum(k."end" - k.start), 100.0 * sum(k."end" - k.start)
        / (SELECT sum("end" - start) FROM CUPTI_ACTIVITY_KIND_KERNEL)
    FROM CUPTI_ACTIVITY_KIND_KERNEL AS k JOIN StringIds AS s ON s.id = k.shortName
    GROUP BY s.value ORDER BY sum(k."end" - k.start) DESC LIMIT 10"""
LAUNCHES = """
    SELECT 'launch', count(*) / 32.0 FROM CUPTI_ACTIVITY_KIND_RUNTIME AS r JOIN StringIds AS s ON s.id = r.nameId
    WHERE s.value LIKE 'cudaLaunchKernel%' OR s.value LIKE 'cuLaunchKernel%'
        OR s.value LIKE 'cudaLaunchCooperativeKernel%'"""
CONFIGS = """
    SELECT s.value, k.gridX, k.gridY, k.gridZ, k.blockX, k.blockY, k.blockZ, count(*)
    FROM CUPTI_ACTIVITY_KIND_KERNEL AS k JOIN StringIds AS s ON s.id = k.shortName
    GROUP BY s.value, k.gridX, k.gridY, k.gridZ, k.blockX, k.blockY, k.blockZ
    ORDER BY count(*) DESC, 1, 2, 3, 4, 5, 6, 7 LIMIT 20"""


@pytest.fixture(scope="module")
def traces():
    with nsys_insight.open(EAGER) as one_trace, nsys_insight.open([EAGER, CHURN]) as two_traces:
        yield one_trace, two_traces


def test_there_are_twenty_recipes():
    assert len(RECIPES) == 20


@pytest.mark.parametrize("question", RECIPES)
def test_a_recipe_answers(question, traces):
    one_trace, two_traces = traces
    answer = (two_traces if "trace," in RECIPES[question] else one_trace).query(RECIPES[question])
    assert (answer.row_count > 0) == (question not in EMPTY)


@pytest.mark.parametrize(
    ("question", "by_hand"),
    [
        ("Which kernels take the time, and what share of it?", TOP),
        ("How many launches does a token take?", LAUNCHES),
        ("Which grids and blocks does each kernel run with?", CONFIGS),
    ],
)
def test_recipes_give_the_same_numbers_as_plain_sql_in_fewer_characters(question, by_hand, traces):
    with closing(sqlite3.connect(f"{EAGER.as_uri()}?immutable=1", uri=True)) as database:
        expected = database.execute(by_hand).fetchall()
    answer = traces[0].query(RECIPES[question]).rows()
    assert [row[:-1] for row in answer] == [row[:-1] for row in expected]
    assert [row[-1] for row in answer] == pytest.approx([row[-1] for row in expected])
    assert len(" ".join(RECIPES[question].split())) < len(" ".join(by_hand.split()))
