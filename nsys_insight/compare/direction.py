"""Whether more or less of a metric is better, by its unit and its name; None where neither tells.

A unit decides where there is one: a rate (tok/s, GFLOPS, GB/s, QPS) should be high; a time, a size, an energy, and what
is spent per piece (ms/token) should be low. Else the last word of the name that says something does: memory_bandwidth
is a bandwidth, cache_miss_rate a miss.
"""

from __future__ import annotations

import re
from typing import Literal

Better = Literal["higher", "lower"]

_TIME = r"(?:[nmuµμ]?s|(?:m|milli|u|micro|n|nano)?s(?:ecs?|econds?)|micros|nanos|millis|min|minutes?|h|hr|hours?)"
_SIZE = r"(?:[kmgt]i?b|b|(?:kilo|mega|giga)?bytes?|pages?)"
_COST = r"(?:m?j|k?j|joules?|m?w|watts?|[k]?wh|usd|\$|°c|cycles?|clk|instructions?|insts?)"
_SPENT = re.compile(rf"{_TIME}|{_SIZE}|{_COST}", re.IGNORECASE)
# Denominators of a rate: time, and what a result costs.
_PER = re.compile(rf"{_TIME}|{_COST}", re.IGNORECASE)
# Rates in one word: (T)FLOPS, Mops, QPS, fps, tps, GUPS, Hz, Gbps.
_RATE = re.compile(
    r"[kmgtp]?(?:flops|iops|ops|ups|lups|bps|tps|qps|rps|fps|ips|teps|hz)|[x\u00d7]|[kmgt]?bit/s", re.IGNORECASE
)
# As the suffix of a name these are units; an s alone is one, as in load_s, but w, h, x and m are not.
_SUFFIX = re.compile(
    r"(?:_|\b)((?:[nmuµμ]s)|s|secs?|seconds|msecs?|usecs?|nsecs?|millis|micros|nanos|[kmgt]i?b|bytes|joules|watts|[kmgt]bps)$",
    re.IGNORECASE,
)
# Words that mean "higher is better" of any quantity: saved time, free memory, hidden time.
_GOOD_TO_HAVE = {"saved", "saving", "savings", "free", "available", "headroom", "overlap", "overlapped", "hidden"}
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
# Bad things stay bad per second: errors/s.
_BAD = frozenset(
    """error errors failure failures failed miss misses fault faults timeouts drops retries preemptions rejected
    evictions conflicts stalls spills""".split()  # noqa: SIM905
)
_RATE_WORDS = re.compile(r"(?<![a-z])(.+?)[ _-]?(?:/|(?<![a-z])per(?![a-z]))[ _-]?([a-zµμ$°]+)", re.IGNORECASE)


def direction(name: str, unit: str = "") -> Better | None:
    """Tell whether a metric is better when it is "higher" or "lower"; None where unit and name do not say.

    Args:
        name: The metric's name: "decode tok/s", "p99_ttft_ms", "achieved_occupancy_pct".
        unit: Its unit, if it is known apart from the name: "GFLOP/s", "ms", "%".
    """
    words = _words(name)
    bad, good = bool(_BAD & set(words)), bool(_GOOD_TO_HAVE & set(words))
    for text in (unit, _unit_in(name)):
        told = _of_unit(text)
        if told == "higher":
            return "lower" if bad else "higher"
        if told == "lower":
            return "higher" if good else "lower"
    if bad:
        return "lower"
    for word in reversed(words):
        if word in _HIGHER:
            return "higher"
        if word in _LOWER:
            return "lower"
    return None


def _of_unit(unit: str) -> Better | None:
    """What a unit says; a share, a count and no unit say nothing."""
    unit = unit.strip().replace(" ", "")
    if not unit:
        return None
    if _RATE.fullmatch(unit):
        return "higher"
    above, slash, below = unit.partition("/")
    if not slash:
        return "lower" if _SPENT.fullmatch(unit) else None
    rate, what = _PER.fullmatch(below), above.lower()
    if rate and not re.fullmatch(_COST, above, re.IGNORECASE) and not re.fullmatch(_TIME, above, re.IGNORECASE):
        return "lower" if what in _BAD else "higher"
    return "lower" if _SPENT.fullmatch(above) or rate else None


def _unit_in(name: str) -> str:
    """The unit that a name carries: in brackets, as `A per B` or `A/B`, or as its last word."""
    if found := re.search(r"[(\[]([^)\]]+)[)\]]\s*$", name):
        return found[1]
    name = _parted(name)
    if found := _RATE_WORDS.search(name):
        above = re.split(r"[\s_-]+", found[1])[-1]
        return f"{above or 'x'}/{found[2]}"
    found = _SUFFIX.search(name)
    return found[1] if found else ""


def _words(name: str) -> list[str]:
    """The words of a name, whether they are parted by signs or by capitals."""
    return [word.lower() for word in re.findall(r"[A-Za-z0-9]+", _parted(name))]


def _parted(name: str) -> str:
    """A name whose words are parted by capitals, decodeTokensPerSec, parted by underscores."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])", "_", name)
