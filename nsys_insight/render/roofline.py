"""Draw the roofline: kernels by operations per byte and operations per second, below the limits of the GPU."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsys_insight.errors import UsageError
from nsys_insight.extras import write_install_command
from nsys_insight.text.kernel_names import fit, make_readable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsys_insight.session.answer import Answer

PICTURES = (".svg", ".png")
# An attribute of a picture: a page that is narrower shows it smaller, not cut.
FITTING_STYLE = 'style="max-width: 100%; height: auto"'
_MARKS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# Several fonts: the PNG converter does not choose a fallback font, and few machines have all of these.
_FONTS = "Arial, 'Liberation Sans', 'DejaVu Sans', 'Noto Sans', sans-serif"
# Caches below this use are not drawn: if a kernel's traffic bypasses L1, L1 counts almost no bytes.
_MIN_USED_PCT = 1.0
_CACHE_LINES = {"L2": ":", "L1": "."}
_CACHE_DASHES = {"L2": "6 3", "L1": "2 3"}
_COLORS = ("#1b6ca8", "#c8553d", "#588157", "#7b2d8b", "#b8860b", "#2f4858", "#d1495b", "#00798c")


@dataclass(frozen=True)
class Point:
    """A kernel: its name, operations per byte, 10^12 operations per second, and the peaks to compare with.

    `peak` is in 10^12 operations per second, `bandwidth` in bytes per second. `caches` are the attained and the peak
    bytes per second of L2 and L1, if they were measured and used.
    """

    name: str
    precision: str
    intensity: float
    rate: float
    peak: float
    bandwidth: float
    caches: tuple[tuple[str, float, float], ...] = ()


def draw(answer: Answer, suffix: str | None, *, limit: int | None, width: int | None) -> str | bytes:
    """Draw an answer of `roofline`: the first `limit` kernels, by default all that have a mark.

    `suffix` is one of `PICTURES`. None draws with characters, `width` characters wide.

    Raises:
        UsageError: No kernel has known operations, bytes and peaks, or this machine cannot write a PNG.
    """
    points = read_points(answer, limit)
    if not points:
        raise UsageError(
            "there is nothing to draw: operations and bytes are unknown for all kernels",
            "give a size: --gemm M,N,K, --attention B,H,S,D or --elements N",
        )
    if suffix is None:
        return plot(points, min(width or 100, 120))
    return convert_to_png(draw_svg(points)) if suffix == ".png" else draw_svg(points)


def read_points(answer: Answer, limit: int | None = None) -> list[Point]:
    """Return the kernels of an answer of `roofline` with known bytes, operations and peaks, with short names."""
    names = [column.name for column in answer.columns]
    points: list[Point] = []
    for values in answer.rows():
        if len(points) == min(limit or len(_MARKS), len(_MARKS)):
            break
        row = dict(zip(names, values, strict=True))
        if row["roof"] is None or not row["flop_count"]:
            continue
        peak, bandwidth = 100 * row["tflop_per_s"] / row["compute_pct"], 100 * row["bytes_per_s"] / row["bandwidth_pct"]
        points.append(
            Point(
                fit(make_readable(row["name"]), 80),
                row["precision"],
                row["intensity_ratio"],
                row["tflop_per_s"],
                peak,
                bandwidth,
                tuple(_read_caches(row)),
            )
        )
    return points


def _read_caches(row: dict[str, Any]) -> Iterator[tuple[str, float, float]]:
    """Yield the figures of L2 and L1 in a row of `ncu roofline`. Rows of `roofline` have none."""
    for level in ("L2", "L1"):
        attained, used_pct = row.get(f"{level.lower()}_bytes_per_s"), row.get(f"{level.lower()}_bandwidth_pct")
        if attained and used_pct and used_pct >= _MIN_USED_PCT:
            yield level, attained, 100 * attained / used_pct


def plot(points: list[Point], width: int = 78, height: int = 20) -> str:
    """Draw with characters, both axes logarithmic: a letter for each kernel, the roofs as slashes and lines.

    The ceilings of L2 and L1 are lines of colons and of dots.
    """
    axes = _Axes(points)
    left, canvas = 9, [[" "] * (width - 9) for _ in range(height)]
    highest = max(point.peak for point in points)
    for column in range(width - left):
        intensity = axes.intensity(column / (width - left - 1))
        for level, bandwidth in _list_cache_roofs(points):
            row = round((1 - axes.y(min(intensity * bandwidth / 1e12, highest))) * (height - 1))
            if 0 <= row < height and intensity * bandwidth / 1e12 < highest:
                canvas[row][column] = _CACHE_LINES[level]
        for peak, bandwidth in _list_roofs(points):
            roof = min(peak, intensity * bandwidth / 1e12)
            row = round((1 - axes.y(roof)) * (height - 1))
            if 0 <= row < height:
                canvas[row][column] = "─" if roof == peak else "/"
    for mark, point in zip(_MARKS, points, strict=False):
        row = round((1 - axes.y(point.rate)) * (height - 1))
        canvas[row][round(axes.x(point.intensity) * (width - left - 1))] = mark
    labels = {round((1 - axes.y(10.0**power)) * (height - 1)): f"{10.0**power:g}" for power in axes.powers_y()}
    lines = [f"{labels.get(row, ''):>7} │" + "".join(cells).rstrip() for row, cells in enumerate(canvas)]
    scale = [" "] * (width + 4)
    for power in axes.powers_x():
        text, start = f"{10.0**power:g}", left + round(axes.x(10.0**power) * (width - left - 1))
        start = min(start, width - len(text))
        scale[start : start + len(text)] = text
    name_width = max(width - (64 if _list_cache_roofs(points) else 44), 20)
    legend = [
        f"  {mark}  {fit(point.name, name_width)}: {_format_numbers(point)}"
        for mark, point in zip(_MARKS, points, strict=False)
    ]
    return "\n".join(
        [
            "tflop/s",
            *lines,
            " " * 8 + "└" + "─" * (width - left),
            "".join(scale).rstrip(),
            _describe_line_styles(points).ljust(width - 9) + "flop/byte",
            "",
            *legend,
        ]
    )


def _describe_line_styles(points: list[Point]) -> str:
    """Return the legend of the lines, if there are several kinds."""
    levels = [level for level in _CACHE_LINES if any(level == name for name, _ in _list_cache_roofs(points))]
    return "".join(["        / DRAM", *(f"  {_CACHE_LINES[level]} {level}" for level in levels)]) if levels else ""


def draw_svg(points: list[Point]) -> str:
    """Draw a self-contained SVG picture."""
    from xml.sax.saxutils import escape

    axes, left, top, width = _Axes(points, has_caches=True), 70, 20, 900
    text_height = top + 60 + 18 * len(points)
    plot_width, plot_height = width - left - 30, max(560 - text_height, 260)
    height = plot_height + text_height

    def place_point(intensity: float, rate: float) -> str:
        return f"{left + axes.x(intensity) * plot_width:.1f},{top + (1 - axes.y(rate)) * plot_height:.1f}"

    elements = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"',
        f"{FITTING_STYLE}>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<g font-family="{_FONTS}" font-size="12">',
    ]
    for power in axes.powers_x():
        x, _ = place_point(10.0**power, 1).split(",")
        elements.append(f'<line x1="{x}" y1="{top}" x2="{x}" y2="{top + plot_height}" stroke="#ddd"/>')
        elements.append(f'<text x="{x}" y="{top + plot_height + 16}" text-anchor="middle">{10.0**power:g}</text>')
    for power in axes.powers_y():
        _, y = place_point(1, 10.0**power).split(",")
        elements.append(f'<line x1="{left}" y1="{y}" x2="{left + plot_width}" y2="{y}" stroke="#ddd"/>')
        elements.append(f'<text x="{left - 6}" y="{float(y) + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    for peak, bandwidth in _list_roofs(points):
        last = axes.intensity(1)
        first = max(axes.intensity(0), 10.0**axes.low * 1e12 / bandwidth)  # starts inside the picture
        ridge = min(max(peak * 1e12 / bandwidth, first), last)
        corners = ((intensity, min(peak, intensity * bandwidth / 1e12)) for intensity in (first, ridge, last))
        line = " ".join(place_point(*corner) for corner in corners)
        elements.append(f'<polyline points="{line}" fill="none" stroke="black" stroke-width="1.5"/>')
    highest = max(point.peak for point in points)
    for level, bandwidth in _list_cache_roofs(points):
        first, last = axes.intensity(0), axes.intensity(1)
        begin, end = max(first, 10.0**axes.low * 1e12 / bandwidth), min(highest * 1e12 / bandwidth, last)
        line = " ".join(place_point(intensity, intensity * bandwidth / 1e12) for intensity in (begin, end))
        elements.append(
            f'<polyline points="{line}" fill="none" stroke="gray" stroke-dasharray="{_CACHE_DASHES[level]}"/>'
        )
        x, y = place_point(end, end * bandwidth / 1e12).split(",")
        elements.append(
            f'<text x="{float(x) - 6:.1f}" y="{float(y) - 6:.1f}" text-anchor="end" fill="gray">{level}</text>'
        )
    elements.append(
        f'<text x="{left + plot_width / 2}" y="{top + plot_height + 34}" text-anchor="middle">flop/byte</text>'
    )
    elements.append(
        f'<text x="14" y="{top + plot_height / 2}" transform="rotate(-90 14 {top + plot_height / 2})">tflop/s</text>'
    )
    for number, point in enumerate(points):
        color = _COLORS[number % len(_COLORS)]
        x, y = place_point(point.intensity, point.rate).split(",")
        legend_y = top + plot_height + 56 + 18 * number
        text = f"{fit(point.name, 64 if _list_cache_roofs(points) else 80)}: {_format_numbers(point)}"
        for level, attained, _ in point.caches:
            cache_x, cache_y = place_point(1e12 * point.rate / attained, point.rate).split(",")
            elements.append(
                f'<line x1="{x}" y1="{y}" x2="{cache_x}" y2="{cache_y}" stroke="{color}" stroke-dasharray="1 3"/>'
            )
            tip = escape(f"{point.name} at {level}: {1e12 * point.rate / attained:,.3g} flop/byte")
            elements.append(
                f'<circle cx="{cache_x}" cy="{cache_y}" r="3" fill="white" stroke="{color}">'
                f"<title>{tip}</title></circle>"
            )
        elements.append(f'<circle cx="{x}" cy="{y}" r="5" fill="{color}"><title>{escape(text)}</title></circle>')
        elements.append(f'<circle cx="{left}" cy="{legend_y - 4}" r="5" fill="{color}"/>')
        elements.append(f'<text x="{left + 12}" y="{legend_y}">{escape(text)}</text>')
    return "\n".join([*elements, "</g>", "</svg>", ""])


def convert_to_png(picture: str) -> bytes:
    """Convert an SVG picture to PNG, at twice its size.

    Raises:
        UsageError: The package for it is not installed, or it finds no font on this machine.
    """
    try:
        import resvg_py  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise UsageError(
            "a .png needs the package resvg-py", f"{write_install_command('png')}; or write -o roofline.svg"
        ) from None
    png_bytes = resvg_py.svg_to_bytes(svg_string=picture, zoom=2)
    if png_bytes == resvg_py.svg_to_bytes(svg_string=picture, zoom=2, skip_system_fonts=True):
        raise UsageError(
            "there is no font to label a .png with", "install one, such as DejaVu Sans, or write -o roofline.svg"
        )
    return bytes(png_bytes)


def _format_numbers(point: Point) -> str:
    cache_text = "".join(f", {level} {100 * attained / peak:.2g}%" for level, attained, peak in point.caches)
    return f"{point.precision}, {point.intensity:,.3g} flop/byte, {point.rate:,.3g} tflop/s{cache_text}"


def _list_roofs(points: list[Point]) -> list[tuple[float, float]]:
    return sorted({(point.peak, point.bandwidth) for point in points})


def _list_cache_roofs(points: list[Point]) -> list[tuple[str, float]]:
    """Return the ceilings of L2 and L1: the highest ones, if kernels ran at different clocks."""
    highest: dict[str, float] = {}
    for point in points:
        for level, _, peak in point.caches:
            highest[level] = max(peak, highest.get(level, 0))
    return sorted(highest.items())


class _Axes:
    """Both axes, logarithmic and scaled to 0 to 1. They contain all points and the ridge of each roof."""

    def __init__(self, points: list[Point], *, has_caches: bool = False) -> None:
        ridges = [peak * 1e12 / bandwidth for peak, bandwidth in _list_roofs(points)]
        x = [point.intensity for point in points] + ridges
        x += [1e12 * point.rate / attained for point in points for _, attained, _ in point.caches] if has_caches else []
        y = [point.rate for point in points] + [point.peak for point in points]
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
