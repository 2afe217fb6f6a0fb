"""The second clinic: programs written by somebody who did not know the rules, and their first findings."""

from __future__ import annotations

import lzma

import pytest
from command_line import REPOSITORY
from opening import open_trace

TRACES = REPOSITORY / "benchmarks" / "clinic2" / "traces"
# The code of the first finding, and words of its cure; None where nothing is to be mended.
FIRST = {
    "citations": ("NSI701", "torch.sparse"),
    "options_book": ("NSI701", "curand_init once"),
    "packed_norm": ("NSI701", "Tune once"),
    "shop": ("NSI701", "F.embedding"),
    "shrink": ("NSI421", "many blocks"),
    "sonar": ("NSI107", "axis="),
    "basin": (None, ""),
    "optics": (None, ""),
}


@pytest.mark.parametrize("name", FIRST)
def test_the_first_finding_names_the_cure(tmp_path, name):
    path = tmp_path / f"{name}.sqlite"
    path.write_bytes(lzma.decompress((TRACES / f"{name}_ailing.sqlite.xz").read_bytes()))
    with open_trace(path) as trace:
        first = trace.diagnose().findings[0]
    code, words = FIRST[name]
    if code:
        assert (first.code, first.severity) == (code, "critical")
        assert words in first.action
    else:
        assert first.severity == "info"
