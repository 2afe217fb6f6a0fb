"""The clinic: what diagnoses of its programs say, as docs/evidence/accuracy.md has it."""

import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
CLINIC = REPOSITORY / "benchmarks" / "clinic"
sys.path.insert(0, str(CLINIC))
import accuracy  # noqa: E402

PAGE = (REPOSITORY / "docs" / "evidence" / "accuracy.md").read_text()
PAIRS = {pair.name: pair for pair in accuracy.read_pairs() if f"| {pair.name} |" in PAGE}
FAST = ("lm_head",)
RESULTS = {}


def get_result(name):
    if name not in RESULTS:
        RESULTS[name] = accuracy.compare_pair(PAIRS[name])
    return RESULTS[name]


def list_names(names):
    return [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", list_names(PAIRS))
def test_the_page_says_what_diagnoses_say(name):
    assert accuracy.write_row(get_result(name)) in PAGE


@pytest.mark.parametrize("name", FAST)
def test_the_first_finding_names_the_cure_and_is_silent_once_cured(name):
    result = get_result(name)
    assert result.is_right
    assert result.is_within
    assert not result.false_alarms


# These cured programs still have something of what the rule names: the host prepares a part of the input, other chains
# than the fused one are left, and a short step has a launch of its own. On two GPUs a part of the exchange is left, and
# under the profiler one of two equal hosts is slower.
LEFT = {
    "photos_train": ("NSI112",), "regularized": ("NSI402",), "membrane": ("NSI102",),
    "capacity_experts": ("NSI501",), "sampled_decode": ("NSI502",),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_the_rule_that_was_cured_saves_nothing_more(name):
    result = get_result(name)
    assert not result.pair.codes or set(result.false_alarms) <= set(LEFT.get(name, ()))


def test_each_pair_has_two_traces_and_a_program():
    for pair in PAIRS.values():
        has_cure = pair.ms_cured is not None
        assert bool(accuracy.find_packed(pair.name, "cured")) == has_cure
        assert (pair.ms_ailing is None) or pair.ms_ailing > (pair.ms_cured or 0)
        assert len(list((CLINIC / "programs").glob(f"{pair.name}.*"))) == 1
