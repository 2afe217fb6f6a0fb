"""Draw the roofline: kernels by operations per byte and operations per second, under what the GPU allows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import UsageError
from nsys_insight.extras import install
from nsys_insight.text.kernel_names import fit, readable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsys_insight.session.answer import Answer

PICTURES = (".svg", ".png")
_MARKS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# Named one by one: what makes a PNG does not look for a font of its own, and few machines have them all.
_FONTS = "Arial, 'Liberation Sans', 'DejaVu Sans', 'Noto Sans', sans-serif"
# A cache that a kernel hardly uses has no place in its picture: what goes past L1 has next to no bytes there.
_USED_PCT = 1.0
_CACHE_LINES = {"L2": ":", "L1": "."}
_CACHE_DASHES = {"L2": "6 3", "L1": "2 3"}
_COLORS = ("#1b6ca8", "#c8553d", "#588157", "#7b2d8b", "#b8860b", "#2f4858", "#d1495b", "#00798c")


@dataclass(frozen=True)
class Point:
    """A kernel: its name, operations per byte, 10^12 operations per second, and the peaks it is compared with.

    `peak` is in 10^12 operations per second, `bandwidth` in bytes per second. `caches` are the bytes per
    second of L2 and L1, attained and at most, where they were measured and used.
    """

    name: str
    precision: str
    intensity: float
    rate: float
    peak: float
    bandwidth: float
    caches: tuple[tuple[str, float, float], ...] = ()


def draw(answer: Answer, suffix: str | None, *, limit: int | None, width: int | None) -> str | bytes:
    """Draw an answer of `roofline`: the first `limit` kernels (else those that have a mark).

    `suffix` is one of `PICTURES`; without, it is drawn with characters, `width` of them wide.

    Raises:
        UsageError: No kernel's operations, bytes and peaks are all known, or this machine cannot make a PNG.
    """
    found = points(answer, limit)
    if not found:
        raise UsageError(
            "there is nothing to draw: operations and bytes are unknown for all kernels",
            "give a size: --gemm M,N,K, --attention B,H,S,D or --elements N",
        )
    if suffix is None:
        return plot(found, min(width or 100, 120))
    return png(svg(found)) if suffix == ".png" else svg(found)


def points(answer: Answer, limit: int | None = None) -> list[Point]:
    """Take from an answer of `roofline` the kernels whose bytes, operations and peaks are known, with short names."""
    names = [column.name for column in answer.columns]
    found: list[Point] = []
    for values in answer.rows():
        if len(found) == min(limit or len(_MARKS), len(_MARKS)):
            break
        row = dict(zip(names, values, strict=True))
        if row["roof"] is None or not row["flop_count"]:
            continue
        peak, bandwidth = 100 * row["tflop_per_s"] / row["compute_pct"], 100 * row["bytes_per_s"] / row["bandwidth_pct"]
        found.append(
            Point(
                fit(readable(row["name"]), 80),
                row["precision"],
                row["intensity_ratio"],
                row["tflop_per_s"],
                peak,
                bandwidth,
                tuple(_caches(row)),
            )
        )
    return found


def _caches(row: dict[str, Any]) -> Iterator[tuple[str, float, float]]:
    """What a row of `ncu roofline` says of L2 and L1; that of a trace says nothing."""
    for level in ("L2", "L1"):
        attained, used = row.get(f"{level.lower()}_bytes_per_s"), row.get(f"{level.lower()}_bandwidth_pct")
        if attained and used and used >= _USED_PCT:
            yield level, attained, 100 * attained / used


def plot(found: list[Point], width: int = 78, height: int = 20) -> str:
    """Draw with characters, both axes logarithmic: a letter for each kernel, the roofs as / and lines.

    The ceilings of L2 and L1 are lines of : and of dots.
    """
    axes = _Axes(found)
    left, canvas = 9, [[" "] * (width - 9) for _ in range(height)]
    highest = max(point.peak for point in found)
    for column in range(width - left):
        intensity = axes.intensity(column / (width - left - 1))
        for level, bandwidth in _cache_roofs(found):
            row = round((1 - axes.y(min(intensity * bandwidth / 1e12, highest))) * (height - 1))
            if 0 <= row < height and intensity * bandwidth / 1e12 < highest:
                canvas[row][column] = _CACHE_LINES[level]
        for peak, bandwidth in _roofs(found):
            roof = min(peak, intensity * bandwidth / 1e12)
            row = round((1 - axes.y(roof)) * (height - 1))
            if 0 <= row < height:
                canvas[row][column] = "─" if roof == peak else "/"
    for mark, point in zip(_MARKS, found, strict=False):
        row = round((1 - axes.y(point.rate)) * (height - 1))
        canvas[row][round(axes.x(point.intensity) * (width - left - 1))] = mark
    labels = {round((1 - axes.y(10.0**power)) * (height - 1)): f"{10.0**power:g}" for power in axes.powers_y()}
    lines = [f"{labels.get(row, ''):>7} │" + "".join(cells).rstrip() for row, cells in enumerate(canvas)]
    scale = [" "] * (width + 4)
    for power in axes.powers_x():
        text, at = f"{10.0**power:g}", left + round(axes.x(10.0**power) * (width - left - 1))
        at = min(at, width - len(text))
        scale[at : at + len(text)] = text
    name_width = max(width - (64 if _cache_roofs(found) else 44), 20)
    legend = [
        f"  {mark}  {fit(point.name, name_width)}: {_numbers(point)}"
        for mark, point in zip(_MARKS, found, strict=False)
    ]
    return "\n".join(
        [
            "tflop/s",
            *lines,
            " " * 8 + "└" + "─" * (width - left),
            "".join(scale).rstrip(),
            _under(found).ljust(width - 9) + "flop/byte",
            "",
            *legend,
        ]
    )


def _under(found: list[Point]) -> str:
    """What the lines are, where there are several kinds."""
    levels = [level for level in _CACHE_LINES if any(level == name for name, _ in _cache_roofs(found))]
    return "".join(["        / DRAM", *(f"  {_CACHE_LINES[level]} {level}" for level in levels)]) if levels else ""


def svg(found: list[Point], width: int = 900, height: int = 560) -> str:
    """Draw as an SVG picture that stands alone."""
    from xml.sax.saxutils import escape

    axes, left, top = _Axes(found, caches=True), 70, 20
    inner, tall = width - left - 30, height - top - 60 - 18 * len(found)
    tall, height = (tall, height) if tall >= 260 else (260, 260 + top + 60 + 18 * len(found))

    def place(intensity: float, rate: float) -> str:
        return f"{left + axes.x(intensity) * inner:.1f},{top + (1 - axes.y(rate)) * tall:.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<g font-family="{_FONTS}" font-size="12">',
    ]
    for power in axes.powers_x():
        x, _ = place(10.0**power, 1).split(",")
        parts.append(f'<line x1="{x}" y1="{top}" x2="{x}" y2="{top + tall}" stroke="#ddd"/>')
        parts.append(f'<text x="{x}" y="{top + tall + 16}" text-anchor="middle">{10.0**power:g}</text>')
    for power in axes.powers_y():
        _, y = place(1, 10.0**power).split(",")
        parts.append(f'<line x1="{left}" y1="{y}" x2="{left + inner}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 6}" y="{float(y) + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    for peak, bandwidth in _roofs(found):
        last = axes.intensity(1)
        first = max(axes.intensity(0), 10.0**axes.low * 1e12 / bandwidth)  # not below the picture
        ridge = min(max(peak * 1e12 / bandwidth, first), last)
        corners = ((at, min(peak, at * bandwidth / 1e12)) for at in (first, ridge, last))
        line = " ".join(place(*corner) for corner in corners)
        parts.append(f'<polyline points="{line}" fill="none" stroke="black" stroke-width="1.5"/>')
    highest = max(point.peak for point in found)
    for level, bandwidth in _cache_roofs(found):
        first, last = axes.intensity(0), axes.intensity(1)
        begin, end = max(first, 10.0**axes.low * 1e12 / bandwidth), min(highest * 1e12 / bandwidth, last)
        line = " ".join(place(at, at * bandwidth / 1e12) for at in (begin, end))
        parts.append(f'<polyline points="{line}" fill="none" stroke="gray" stroke-dasharray="{_CACHE_DASHES[level]}"/>')
        x, y = place(end, end * bandwidth / 1e12).split(",")
        parts.append(
            f'<text x="{float(x) - 6:.1f}" y="{float(y) - 6:.1f}" text-anchor="end" fill="gray">{level}</text>'
        )
    parts.append(f'<text x="{left + inner / 2}" y="{top + tall + 34}" text-anchor="middle">flop/byte</text>')
    parts.append(f'<text x="14" y="{top + tall / 2}" transform="rotate(-90 14 {top + tall / 2})">tflop/s</text>')
    for number, point in enumerate(found):
        color = _COLORS[number % len(_COLORS)]
        x, y = place(point.intensity, point.rate).split(",")
        below = top + tall + 56 + 18 * number
        text = f"{fit(point.name, 64 if _cache_roofs(found) else 80)}: {_numbers(point)}"
        for level, attained, _ in point.caches:
            at, height_of = place(1e12 * point.rate / attained, point.rate).split(",")
            parts.append(
                f'<line x1="{x}" y1="{y}" x2="{at}" y2="{height_of}" stroke="{color}" stroke-dasharray="1 3"/>'
            )
            tip = escape(f"{point.name} at {level}: {1e12 * point.rate / attained:,.3g} flop/byte")
            parts.append(
                f'<circle cx="{at}" cy="{height_of}" r="3" fill="white" stroke="{color}"><title>{tip}</title></circle>'
            )
        parts.append(f'<circle cx="{x}" cy="{y}" r="5" fill="{color}"><title>{escape(text)}</title></circle>')
        parts.append(f'<circle cx="{left}" cy="{below - 4}" r="5" fill="{color}"/>')
        parts.append(f'<text x="{left + 12}" y="{below}">{escape(text)}</text>')
    return "\n".join([*parts, "</g>", "</svg>", ""])


def png(picture: str) -> bytes:
    """Make an SVG picture a PNG, at twice its size.

    Raises:
        UsageError: The package that does it is not installed, or this machine has no font that it finds.
    """
    try:
        import resvg_py  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise UsageError("a .png needs the package resvg-py", f"{install('png')}; or write -o roofline.svg") from None
    drawn = resvg_py.svg_to_bytes(svg_string=picture, zoom=2)
    if drawn == resvg_py.svg_to_bytes(svg_string=picture, zoom=2, skip_system_fonts=True):
        raise UsageError(
            "there is no font to label a .png with", "install one, such as DejaVu Sans, or write -o roofline.svg"
        )
    return bytes(drawn)


def _numbers(point: Point) -> str:
    used = "".join(f", {level} {100 * attained / most:.2g} %" for level, attained, most in point.caches)
    return f"{point.precision}, {point.intensity:,.3g} flop/byte, {point.rate:,.3g} tflop/s{used}"


def _roofs(found: list[Point]) -> list[tuple[float, float]]:
    return sorted({(point.peak, point.bandwidth) for point in found})


def _cache_roofs(found: list[Point]) -> list[tuple[str, float]]:
    """The ceilings of L2 and L1: of kernels that ran at other clocks, the highest."""
    highest: dict[str, float] = {}
    for point in found:
        for level, _, most in point.caches:
            highest[level] = max(most, highest.get(level, 0))
    return sorted(highest.items())


class _Axes:
    """Both axes from 0 to 1, logarithmic, wide enough for all points and the ridge of each roof."""

    def __init__(self, found: list[Point], *, caches: bool = False) -> None:
        ridges = [peak * 1e12 / bandwidth for peak, bandwidth in _roofs(found)]
        x = [point.intensity for point in found] + ridges
        x += [1e12 * point.rate / attained for point in found for _, attained, _ in point.caches] if caches else []
        y = [point.rate for point in found] + [point.peak for point in found]
        self.left, self.right = math.floor(math.log10(min(x)) - 0.3), math.ceil(math.log10(max(x)) + 0.3)
        self.low, self.high = math.floor(math.log10(min(y)) - 0.1), math.ceil(math.log10(max(y)) + 0.1)

    def x(self, intensity: float) -> float:
        return (math.log10(intensity) - self.left) / (self.right - self.left)

    def y(self, rate: float) -> float:
        return (math.log10(rate) - self.low) / (self.high - self.low)

    def intensity(self, x: float) -> float:
        return float(10 ** (self.left + x * (self.right - self.left)))

    def powers_x(self) -> range:
        return range(self.left, self.right + 1)

    def powers_y(self) -> range:
        return range(self.low, self.high + 1)
