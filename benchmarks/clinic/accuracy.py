"""Diagnose the traces of the clinic, and compare the findings with what the cures saved.

python3 benchmarks/clinic/accuracy.py [--half open|unseen] [NAME ...]    # print the table of these pairs
python3 benchmarks/clinic/accuracy.py --page                             # write docs/evidence/accuracy.md
"""

from __future__ import annotations

import argparse
import lzma
import os
import tempfile
import tomllib
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsys_insight.diagnose.findings import DiagnosisResult, Finding

FOLDER = Path(__file__).resolve().parent
TRACES = FOLDER / "traces"
PAGE = FOLDER.parents[1] / "docs" / "evidence" / "accuracy.md"
INTRODUCTION = FOLDER / "accuracy_introduction.md"
WARMUP_STEPS = 5  # of a program that is captured from its start (harness.py)
WIDEST = 3.0  # times the lower bound, for the upper bound of a useful range
NOTHING = "-"
ALARM_SHARE = 0.05  # of a step, that a saving must reach to count as a false alarm


@dataclass(frozen=True)
class Pair:
    """A program in two variants, from corpus.toml."""

    name: str
    framework: str
    ailment: str
    codes: tuple[str, ...]
    cure: str
    split: str
    steps: int
    is_captured_from_start: bool
    ms_ailing: float | None
    ms_cured: float | None

    @property
    def saved_ms(self) -> float | None:
        """Return what the cure saves in a step, without a profiler."""
        return None if self.ms_ailing is None or self.ms_cured is None else self.ms_ailing - self.ms_cured


@dataclass(frozen=True)
class Hint:
    """A finding: its rule, its severity, and the saving that it predicts for a step of the program."""

    code: str
    title: str
    severity: str
    low_ms: float | None
    high_ms: float | None


@dataclass(frozen=True)
class Result:
    """The findings on both variants. `hints` are those with a place of their own, `lower_hints` the others."""

    pair: Pair
    hints: tuple[Hint, ...]
    lower_hints: tuple[Hint, ...]
    on_cured: tuple[Hint, ...]

    @property
    def is_right(self) -> bool:
        """Return whether the first finding names the ailment; for a healthy program, whether there is no alarm."""
        if not self.pair.codes:
            return not self.false_alarms
        return bool(self.hints) and self.hints[0].code in self.pair.codes

    @property
    def naming_hint(self) -> Hint | None:
        """Return the first finding that names the ailment, at any place."""
        return next((hint for hint in (*self.hints, *self.lower_hints) if hint.code in self.pair.codes), None)

    @property
    def has_range(self) -> bool:
        """Return whether a saving was measured, and the finding that names the ailment predicts one."""
        return self.pair.saved_ms is not None and self.naming_hint is not None and self.naming_hint.high_ms is not None

    @property
    def is_within(self) -> bool:
        """Return whether the measured saving lies in the predicted range."""
        hint, saved_ms = self.naming_hint, self.pair.saved_ms
        if hint is None or saved_ms is None or hint.high_ms is None:
            return False
        return (hint.low_ms or 0) <= saved_ms <= hint.high_ms

    @property
    def is_narrow(self) -> bool:
        """Return whether the upper bound is at most three times the lower one."""
        hint = self.naming_hint
        return hint is not None and hint.high_ms is not None and hint.high_ms <= WIDEST * (hint.low_ms or 0)

    @property
    def false_alarms(self) -> tuple[str, ...]:
        """Return the rules of the ailment that see much to save in the cured program; in a healthy one, all that do."""
        if not self.pair.codes:
            return find_alarms(self.hints, self.pair.ms_ailing)
        return tuple(code for code in find_alarms(self.on_cured, self.pair.ms_cured) if code in self.pair.codes)


def find_alarms(hints: Iterable[Hint], step_ms: float | None) -> tuple[str, ...]:
    """Return the rules that predict a saving of more than a twentieth of the step."""
    least_ms = ALARM_SHARE * (step_ms or 0)
    return tuple(sorted({hint.code for hint in hints if (hint.high_ms or 0) > least_ms}))


def read_pairs() -> tuple[Pair, ...]:
    """Return the pairs of the corpus whose traces are here."""
    entries = tomllib.loads((FOLDER / "corpus.toml").read_text())["pair"]
    return tuple(
        Pair(
            name=entry["name"],
            framework=entry["framework"],
            ailment=entry["ailment"],
            codes=tuple(entry.get("codes", ())),
            cure=entry.get("cure", ""),
            split=entry["split"],
            steps=entry["steps"],
            is_captured_from_start="--capture-range" not in entry["capture"],
            ms_ailing=entry.get("ms_ailing"),
            ms_cured=entry.get("ms_cured"),
        )
        for entry in entries
        if find_packed(entry["name"], "ailing")
    )


def find_packed(name: str, variant: str) -> list[Path]:
    """Return the paths of the packed traces of a program: one, or one for each rank."""
    patterns = (f"{name}_{variant}.sqlite.xz", f"{name}_{variant}_rank*.sqlite.xz")
    return [path for pattern in patterns for path in sorted(TRACES.glob(pattern))]


def diagnose_packed(packed: Sequence[Path]) -> tuple[DiagnosisResult, int, float | None]:
    """Diagnose packed traces; return the wall time of the first in ns and the number of steps that its kernels make."""
    import nsys_insight

    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / path.name.removesuffix(".xz") for path in packed]
        for path, packed_path in zip(paths, packed, strict=True):
            path.write_bytes(lzma.decompress(packed_path.read_bytes()))
        with nsys_insight.open(paths[0]) as trace:
            span_ns = trace.sql("SELECT end_ns - start_ns FROM wall").item()
            # Kernels before and after the loop that was found are of the same program.
            count = trace.sql(
                "SELECT (SELECT count(*) FROM kernels) / nullif(median(kernels), 0) FROM steps WHERE phase = 'steady'"
            ).item()
        with nsys_insight.open(paths) as traces:
            return traces.diagnose(), span_ns, count


def count_repeats(pair: Pair, result: DiagnosisResult, span_ns: int, count: float | None) -> float:
    """Return how many of the steps that were found make one step of the program.

    An inner loop, such as the layers of a model, may be the loop that was found; or a step that was found takes two
    steps of the program, which alternate between two buffers.
    """
    found_ns = result.wall_ns
    if result.unit == "trace" or not found_ns:
        return 1.0 / pair.steps
    from_start = (count or 1) / (pair.steps + WARMUP_STEPS)
    ratio = from_start if pair.is_captured_from_start else span_ns / pair.steps / found_ns
    return float(round(ratio)) if ratio >= 1 else 1.0 / round(1 / ratio)


def diagnose_variant(pair: Pair, variant: str) -> tuple[tuple[Hint, ...], tuple[Hint, ...]]:
    """Return the leading findings on a variant, and the others."""
    result, span_ns, count = diagnose_packed(find_packed(pair.name, variant))
    repeats = count_repeats(pair, result, span_ns, count)

    def make_hint(finding: Finding) -> Hint:
        low, high = (
            None if value is None else value * repeats / 1e6
            for value in (finding.saving_low_ns, finding.recoverable_ns)
        )
        return Hint(finding.code, finding.title, finding.severity, low, high)

    first = tuple(map(make_hint, result.findings))
    return first, tuple(make_hint(member) for finding in result.findings for member in finding.also)


def compare_pair(pair: Pair) -> Result:
    """Diagnose both variants of a pair."""
    first, lower_hints = diagnose_variant(pair, "ailing")
    on_cured: tuple[Hint, ...] = ()
    if find_packed(pair.name, "cured"):
        on_cured = sum(diagnose_variant(pair, "cured"), ())
    return Result(pair, first, lower_hints, on_cured)


def compare_pairs(pairs: Sequence[Pair]) -> tuple[Result, ...]:
    """Diagnose the pairs on all cores."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        return tuple(pool.map(compare_pair, pairs))


def write_ms(value: float | None) -> str:
    """Write a time with three digits."""
    return NOTHING if value is None else f"{value:.3g}"


def write_range(hint: Hint | None) -> str:
    """Write a predicted range in ms."""
    if hint is None or hint.high_ms is None:
        return NOTHING
    return f"{write_ms(hint.low_ms or 0.0)} to {write_ms(hint.high_ms)}"


def write_row(result: Result) -> str:
    """Write the table row of a pair."""
    pair = result.pair
    first = f"{result.hints[0].code} {result.hints[0].title}" if result.hints else "nothing"
    right = "yes" if result.is_right else "**no**"
    verdict = NOTHING
    if pair.codes and pair.saved_ms is not None:
        verdict = ("yes" if result.is_narrow else "yes, wide") if result.is_within else "**no**"
    cells = [
        pair.name, pair.framework, pair.ailment.replace("_", " "), first, right,
        f"{write_ms(pair.ms_ailing)} → {write_ms(pair.ms_cured)}" if pair.saved_ms else write_ms(pair.ms_ailing),
        write_range(result.naming_hint), write_ms(pair.saved_ms), verdict, ", ".join(result.false_alarms) or NOTHING,
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


HEADER = """\
| pair | framework | ailment | found first | right | step (ms) | predicted (ms) | measured (ms) | within | false alarm |
|---|---|---|---|---|---|---|---|---|---|"""


def write_summary(results: Sequence[Result]) -> str:
    """Write how many first findings and ranges are right."""
    ranges = [result for result in results if result.pair.codes and result.pair.saved_ms is not None]
    within_count = sum(result.is_within for result in ranges)
    narrow_count = sum(result.is_within and result.is_narrow for result in ranges)
    alarms = sum(bool(result.false_alarms) for result in results)
    return (
        f"First finding right: {write_share(sum(result.is_right for result in results), len(results))}. "
        f"Measured saving within the predicted range: {write_share(within_count, len(ranges))}; "
        f"with an upper bound of at most three times the lower one: {write_share(narrow_count, len(ranges))}. "
        f"False alarms: {alarms}."
    )


def write_share(part: int, total: int) -> str:
    """Write "12 of 16 (75%)"."""
    return f"{part} of {total}" + (f" ({100 * part / total:.0f}%)" if total else "")


def choose_rule(result: Result) -> str:
    """Return the rule that names the ailment; if none does, the first of its rules."""
    return result.naming_hint.code if result.naming_hint is not None else result.pair.codes[0]


def write_rules(results: Sequence[Result]) -> Iterable[str]:
    """Write the table of rules."""
    hits: Counter[str] = Counter()
    misses: Counter[str] = Counter()
    alarms: Counter[str] = Counter()
    other_alarms: Counter[str] = Counter()
    ranges: dict[str, list[Result]] = {}
    for result in results:
        alarms.update(result.false_alarms)
        other_alarms.update(set(find_alarms(result.on_cured, result.pair.ms_cured)) - set(result.pair.codes))
        if result.pair.codes:
            code = choose_rule(result)
            (hits if result.is_right else misses)[code] += 1
        if result.naming_hint is not None and result.has_range:
            ranges.setdefault(result.naming_hint.code, []).append(result)
    yield "| rule | hits | misses | false alarms | on other cured programs | predicted → measured (ms) |"
    yield "|---|---|---|---|---|---|"
    for code in sorted(hits | misses | alarms):
        pairs = "; ".join(
            f"{write_range(result.naming_hint)} → {write_ms(result.pair.saved_ms)}" for result in ranges.get(code, ())
        )
        yield (
            f"| {code} | {hits[code]} | {misses[code]} | {alarms[code]} | {other_alarms[code]} | {pairs or NOTHING} |"
        )


def write_page(results: Sequence[Result]) -> str:
    """Write docs/evidence/accuracy.md."""
    halves = {split: [r for r in results if r.pair.split == split] for split in ("open", "unseen")}
    lines = [INTRODUCTION.read_text().rstrip()]
    for split, title in (("open", "The open half"), ("unseen", "The unseen half")):
        if not halves[split]:
            continue
        lines += ["", f"## {title}", "", write_summary(halves[split]), "", HEADER, *map(write_row, halves[split])]
    lines += ["", "## Rules", "", *write_rules(results), ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--half", choices=["open", "unseen"])
    parser.add_argument("--page", action="store_true")
    args = parser.parse_args()
    pairs = [
        pair for pair in read_pairs() if (not args.names or pair.name in args.names) and args.half in {None, pair.split}
    ]
    results = compare_pairs(pairs)
    if args.page:
        PAGE.write_text(write_page(results))
    print(HEADER, *map(write_row, results), "", write_summary(results), "", *write_rules(results), sep="\n")


if __name__ == "__main__":
    main()
