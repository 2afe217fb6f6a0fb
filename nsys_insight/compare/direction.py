"""Infer from unit and name whether higher or lower values of a metric are better.

The unit decides if there is one. A rate (tok/s, GFLOPS, GB/s, QPS) should be high. A time, a size, an energy and a cost
per item (ms/token) should be low. Otherwise the last known word of the name decides: memory_bandwidth is a bandwidth,
cache_miss_rate is a miss.
"""

from __future__ import annotations

import re
from typing import Literal

Better = Literal["higher", "lower"]

_TIME = r"(?:[nmuµμ]?s|(?:m|milli|u|micro|n|nano)?s(?:ecs?|econds?)|micros|nanos|millis|min|minutes?|h|hr|hours?)"
_SIZE = r"(?:[kmgt]i?b|b|(?:kilo|mega|giga)?bytes?|pages?)"
_COST = r"(?:m?j|k?j|joules?|m?w|watts?|[k]?wh|usd|\$|°c|cycles?|clk|instructions?|insts?)"
_COST_UNITS = re.compile(rf"{_TIME}|{_SIZE}|{_COST}", re.IGNORECASE)
# Denominators of a rate: times and costs.
_RATE_DENOMINATORS = re.compile(rf"{_TIME}|{_COST}", re.IGNORECASE)
# Rates in one word: (T)FLOPS, Mops, QPS, fps, tps, GUPS, Hz, Gbps.
_RATE_UNITS = re.compile(
    r"[kmgtp]?(?:flops|iops|ops|ups|lups|bps|tps|qps|rps|fps|ips|teps|hz)|[x\u00d7]|[kmgt]?bit/s", re.IGNORECASE
)
# Units at the end of a name. A single s is a unit, as in load_s, but w, h, x and m are not.
_UNIT_SUFFIX = re.compile(
    r"(?:_|\b)((?:[nmuµμ]s)|s|secs?|seconds|msecs?|usecs?|nsecs?|millis|micros|nanos|[kmgt]i?b|bytes|joules|watts|[kmgt]bps)$",
    re.IGNORECASE,
)
# Words that reverse the direction of a cost: saved time, free memory, hidden time.
_BENEFITS = {"saved", "saving", "savings", "free", "available", "headroom", "overlap", "overlapped", "hidden"}
_HIGHER = frozenset(
    """throughput bandwidth goodput tps qps rps fps ips iops flops kflops mflops gflops tflops pflops ops mops gops tops
    gups mfu hfu speedup speed utilization utilisation util occupancy hit hits efficiency accuracy acceptance accepted
    ipc score reward f1 bleu rouge auc recall precision saved savings""".split()  # noqa: SIM905
)
_LOWER = frozenset(
    """time times latency ttft tpot itl e2el duration elapsed runtime wall overhead delay jitter lag wait waiting stall
    stalls idle memory mem rss vram footprint allocations allocs mallocs loss perplexity ppl error errors err failure
    failures failed miss misses fault faults spills spill registers power energy temperature launches syncs cpi cycles
    instructions conflicts rejected preemptions retries timeouts drops evictions mape mse rmse mae wer cost
    slowdown""".split()  # noqa: SIM905
)
# Words for harmful events. Their rate is harmful too: errors/s.
_HARMS = frozenset(
    """error errors failure failures failed miss misses fault faults timeouts drops retries preemptions rejected
    evictions conflicts stalls spills""".split()  # noqa: SIM905
)
_RATE_IN_NAME = re.compile(r"(?<![a-z])(.+?)[ _-]?(?:/|(?<![a-z])per(?![a-z]))[ _-]?([a-zµμ$°]+)", re.IGNORECASE)


def infer_direction(name: str, unit: str = "") -> Better | None:
    """Return "higher" or "lower", the better direction of a metric; None if unit and name do not determine it.

    Args:
        name: Name of the metric: "decode tok/s", "p99_ttft_ms", "achieved_occupancy_pct".
        unit: Its unit, if it is known separately: "GFLOP/s", "ms", "%".
    """
    words = _split_words(name)
    is_harmful, is_beneficial = bool(_HARMS & set(words)), bool(_BENEFITS & set(words))
    for text in (unit, _find_unit(name)):
        unit_direction = _infer_from_unit(text)
        if unit_direction == "higher":
            return "lower" if is_harmful else "higher"
        if unit_direction == "lower":
            return "higher" if is_beneficial else "lower"
    if is_harmful:
        return "lower"
    for word in reversed(words):
        if word in _HIGHER:
            return "higher"
        if word in _LOWER:
            return "lower"
    return None


def _infer_from_unit(unit: str) -> Better | None:
    """Return the direction that a unit implies; None for a share, a count and an empty unit."""
    unit = unit.strip().replace(" ", "")
    if not unit:
        return None
    if _RATE_UNITS.fullmatch(unit):
        return "higher"
    numerator, slash, denominator = unit.partition("/")
    if not slash:
        return "lower" if _COST_UNITS.fullmatch(unit) else None
    is_per_unit, bare_numerator = _RATE_DENOMINATORS.fullmatch(denominator), numerator.lower()
    if (
        is_per_unit
        and not re.fullmatch(_COST, numerator, re.IGNORECASE)
        and not re.fullmatch(_TIME, numerator, re.IGNORECASE)
    ):
        return "lower" if bare_numerator in _HARMS else "higher"
    return "lower" if _COST_UNITS.fullmatch(numerator) or is_per_unit else None


def _find_unit(name: str) -> str:
    """Return the unit inside a name: in brackets, as `A per B` or `A/B`, or as the last word; else an empty text."""
    if match := re.search(r"[(\[]([^)\]]+)[)\]]\s*$", name):
        return match[1]
    name = _split_camel_case(name)
    if match := _RATE_IN_NAME.search(name):
        numerator = re.split(r"[\s_-]+", match[1])[-1]
        return f"{numerator or 'x'}/{match[2]}"
    match = _UNIT_SUFFIX.search(name)
    return match[1] if match else ""


def _split_words(name: str) -> list[str]:
    """Split a name into words, at punctuation and at capital letters."""
    return [word.lower() for word in re.findall(r"[A-Za-z0-9]+", _split_camel_case(name))]


def _split_camel_case(name: str) -> str:
    """Insert underscores into a name in camel case: decodeTokensPerSec becomes decode_Tokens_Per_Sec."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])", "_", name)
