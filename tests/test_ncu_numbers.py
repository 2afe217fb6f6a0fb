"""Numbers of a CSV page of ncu that do not fit into 64 bits are unknown."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import run

from nsys_insight.ingest.ncu.pages import _parse_dimensions, _parse_integer

PAGE = Path(__file__).parent / "data/ncu/zoo_a.ncu.raw.csv"


@pytest.mark.parametrize("cell", ["9" * 30, "9" * 5000, "²", "", "x"])
def test_a_number_of_too_many_digits_is_unknown(cell):
    assert _parse_integer(cell) is None
    assert _parse_integer("1,024") == 1024
    assert _parse_dimensions(f"(12, 1, {'9' * 30})") == (12, 1, None)


def test_the_rest_of_the_page_is_read(tmp_path):
    text = PAGE.read_text(encoding="utf-8")
    assert '"1","7"' in text
    page = tmp_path / "page.csv"
    page.write_text(text.replace('"1","7"', f'"1","{"9" * 30}"'), encoding="utf-8")
    outcome = run("ncu", "report", page)
    assert (outcome.returncode, "Traceback" in outcome.stderr) == (0, False)
