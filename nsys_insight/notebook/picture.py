"""Self-contained SVG pictures, drawn from the same numbers as those of the page."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight import outputs
from nsys_insight.errors import UsageError
from nsys_insight.notebook.html import read_colors
from nsys_insight.page import styles
from nsys_insight.render.roofline import FITTING_STYLE, convert_to_png

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsys_insight.page.pictures import Bar, Stack
    from nsys_insight.page.timeline import Still

_WIDTH, _NAME_WIDTH, _MARGIN, _LINE_HEIGHT = 1000, 120, 12, 20
_FONT = "Arial, 'Liberation Sans', 'DejaVu Sans', 'Noto Sans', sans-serif"
_CHARACTER_WIDTH = 6.4  # average pixels of a character in this font
# Styles that are dark enough for white letters.
_DARK_STYLES = {"gemm", "attention", "graph", "comm", "blocked", "copy"}


@dataclass(frozen=True)
class Picture:
    """A picture. Notebooks show it, and `save` writes it to a file."""

    svg: str

    def __repr__(self) -> str:
        """Say how to keep it, instead of its text."""
        return "<Picture; .save('picture.svg') or .save('picture.png') writes it>"

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        # JupyterLab shows an SVG as an image, which is cut off in a narrow cell and has no tips.
        return self.svg

    def save(self, path: str | Path) -> Path:
        """Write it to a file, `.svg` or `.png`, and return the path.

        Raises:
            UsageError: The suffix is a different one, the file cannot be written, or this machine cannot write a .png.
        """
        target = Path(path)
        suffix = target.suffix.lower()
        if suffix not in (".svg", ".png"):
            raise UsageError(f"a picture cannot be written as {target.name!r}", "end its name in .svg or .png")
        outputs.write_output(target, convert_to_png(self.svg) if suffix == ".png" else self.svg)
        return target


def draw_timeline(still: Still, title: str) -> Picture:
    """Draw a window of time: what the host did, what the GPUs did, and why they were idle."""
    view, plot_width = still.view, _WIDTH - _NAME_WIDTH - _MARGIN
    top = 2 * _LINE_HEIGHT
    bottom = float(top + view.height)
    elements = [f'<text x="{_MARGIN}" y="18" font-weight="bold">{escape(title)}</text>']
    for tick_pct, text in still.ticks:
        x = _NAME_WIDTH + tick_pct * plot_width / 100
        elements.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}" stroke="#d5dbe1"/>')
        x, anchor = (x + 3, "start") if x + 3 + len(text) * _CHARACTER_WIDTH < _WIDTH else (x - 3, "end")
        elements.append(f'<text x="{x:.1f}" y="{top + 10}" text-anchor="{anchor}" fill="#57606a">{escape(text)}</text>')
    for track, offset in zip(view.tracks, view.tops, strict=False):
        track_y = top + offset
        elements.append(
            f'<text x="{_NAME_WIDTH - 6}" y="{track_y + track.height / 2 + 4:.1f}" text-anchor="end">'
            f"{escape(track.name)}</text>"
        )
        box = (_NAME_WIDTH, track_y, plot_width, track.height)
        elements += [_draw_bar(bar, box, has_label=track.kind != "idle") for bar in still.draw_bars(track)]
    legend, y = _draw_legend([(style, styles.LEGEND[style]) for style in view.styles], bottom + _LINE_HEIGHT)
    if view.omissions:
        omissions = escape("; ".join(view.omissions))
        elements.append(f'<text x="{_MARGIN}" y="{y + 6}" fill="#57606a">Drawn: {omissions}</text>')
        y += _LINE_HEIGHT
    return _make_picture([*elements, *legend], y)


def draw_stacks(stacks: Sequence[Stack], title: str) -> Picture:
    """Draw stacked bars that add up to 100%, with a legend entry for each part."""
    elements = [f'<text x="{_MARGIN}" y="18" font-weight="bold">{escape(title)}</text>']
    y, plot_width = 2.0 * _LINE_HEIGHT, _WIDTH - 2 * _MARGIN
    for stack in stacks:
        if stack.title:
            elements.append(f'<text x="{_MARGIN}" y="{y}">{escape(stack.title)}</text>')
        elements += [_draw_bar(bar, (_MARGIN, y + 8, plot_width, 34), has_label=False) for bar in stack.bars]
        legend, y = _draw_legend([(bar.style, f"{bar.label} {bar.figure}") for bar in stack.bars], y + 64)
        elements += legend
        y += _LINE_HEIGHT
    return _make_picture(elements, y - _LINE_HEIGHT)


def _draw_bar(bar: Bar, track: tuple[float, float, float, float], *, has_label: bool) -> str:
    """Draw an event on a track. `track` is its left, top, width and height."""
    left, y, plot_width, height = track
    x, width = left + bar.left * plot_width / 100, max(bar.width * plot_width / 100, 0.4)
    fill = read_colors().get(bar.style, read_colors()["unknown"])
    position = f'x="{x:.2f}" y="{y}" width="{width:.2f}" height="{height}"'
    rect = f'<rect {position} fill="{fill}"><title>{escape(bar.tip)}</title></rect>'
    max_letters = int((width - 8) / _CHARACTER_WIDTH)
    if not has_label or max_letters < 4:
        return rect
    label = bar.label if len(bar.label) <= max_letters else bar.label[: max_letters - 1] + "…"
    text_color = "#fff" if bar.style in _DARK_STYLES else "#1b1f24"
    return f'{rect}<text x="{x + 4:.1f}" y="{y + height / 2 + 4:.1f}" fill="{text_color}">{escape(label)}</text>'


def _draw_legend(entries: Iterable[tuple[str, str]], y: float) -> tuple[list[str], float]:
    """Draw the legend of the styles on one or several lines. Return its elements, and the y where it ends."""
    elements, x = [], float(_MARGIN)
    for style, text in entries:
        width = 16 + len(text) * _CHARACTER_WIDTH + 18
        if x + width > _WIDTH - _MARGIN and x > _MARGIN:
            x, y = float(_MARGIN), y + _LINE_HEIGHT
        fill = read_colors().get(style, read_colors()["unknown"])
        elements.append(f'<rect x="{x:.1f}" y="{y - 10}" width="11" height="11" rx="2" fill="{fill}"/>')
        elements.append(f'<text x="{x + 16:.1f}" y="{y}">{escape(text)}</text>')
        x += width
    return elements, y + _LINE_HEIGHT


def _make_picture(elements: Iterable[str], height: float) -> Picture:
    body = "\n".join(elements)
    return Picture(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height:.0f}" '
        f'viewBox="0 0 {_WIDTH} {height:.0f}" {FITTING_STYLE}>\n<rect width="100%" height="100%" fill="white"/>\n'
        f'<g font-family="{_FONT}" font-size="11" fill="#1b1f24">\n{body}\n</g>\n</svg>\n'
    )
