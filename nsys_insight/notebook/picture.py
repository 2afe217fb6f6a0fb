"""Pictures that stand alone: SVG, drawn from the same numbers as those of the page."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_insight import outputs
from nsys_insight.errors import UsageError
from nsys_insight.notebook.html import colors
from nsys_insight.page import styles

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsys_insight.page.pictures import Bar, Stack
    from nsys_insight.page.timeline import Still

_WIDTH, _LEFT, _MARGIN, _LINE = 1000, 120, 12, 20
_FONT = "Arial, 'Liberation Sans', 'DejaVu Sans', 'Noto Sans', sans-serif"
_CHARACTER = 6.4  # pixels of one, on average, in this font
# Looks that are dark enough for white letters.
_DARK = {"gemm", "attention", "graph", "comm", "blocked", "copy"}


@dataclass(frozen=True)
class Picture:
    """A picture: notebooks show it, and `save` writes it to a file."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> Path:
        """Write it to a file, `.svg` or `.png`, and return the path.

        Raises:
            UsageError: The suffix is another one, the file cannot be written, or a .png cannot be made here.
        """
        from nsys_insight.render.roofline import png

        target = Path(path)
        suffix = target.suffix.lower()
        if suffix not in (".svg", ".png"):
            raise UsageError(f"a picture cannot be written as {target.name!r}", "end its name in .svg or .png")
        outputs.save(target, png(self.svg) if suffix == ".png" else self.svg)
        return target


def timeline(still: Still, title: str) -> Picture:
    """Draw a window of time: what the host did, what the GPUs did, and why they were idle."""
    view, inner = still.view, _WIDTH - _LEFT - _MARGIN
    top = 2 * _LINE
    bottom = float(top + view.height)
    parts = [f'<text x="{_MARGIN}" y="18" font-weight="bold">{escape(title)}</text>']
    for place, text in still.ticks:
        x = _LEFT + place * inner / 100
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}" stroke="#d5dbe1"/>')
        parts.append(f'<text x="{x + 3:.1f}" y="{top + 10}" fill="#57606a">{escape(text)}</text>')
    for track, below in zip(view.tracks, view.tops, strict=False):
        at = top + below
        parts.append(
            f'<text x="{_LEFT - 6}" y="{at + track.height / 2 + 4:.1f}" text-anchor="end">{escape(track.name)}</text>'
        )
        parts += [_bar(bar, (_LEFT, at, inner, track.height), named=track.kind != "idle") for bar in still.bars(track)]
    legend, y = _legend([(style, styles.LEGEND[style]) for style in view.styles], bottom + _LINE)
    if view.cut:
        parts.append(f'<text x="{_MARGIN}" y="{y + 6}" fill="#57606a">Drawn: {escape("; ".join(view.cut))}</text>')
        y += _LINE
    return _picture([*parts, *legend], y)


def stacks(found: Sequence[Stack], title: str) -> Picture:
    """Draw bars made of parts that add up to 100 %, with a line of text for each part."""
    parts = [f'<text x="{_MARGIN}" y="18" font-weight="bold">{escape(title)}</text>']
    y, inner = 2.0 * _LINE, _WIDTH - 2 * _MARGIN
    for stack in found:
        if stack.title:
            parts.append(f'<text x="{_MARGIN}" y="{y}">{escape(stack.title)}</text>')
        parts += [_bar(bar, (_MARGIN, y + 8, inner, 34), named=False) for bar in stack.parts]
        legend, y = _legend([(bar.style, f"{bar.label} {bar.figure}") for bar in stack.parts], y + 64)
        parts += legend
        y += _LINE
    return _picture(parts, y - _LINE)


def _bar(bar: Bar, track: tuple[float, float, float, float], *, named: bool) -> str:
    """Draw an event on a track, of which are given left, top, width and height."""
    left, y, inner, height = track
    x, width = left + bar.left * inner / 100, max(bar.width * inner / 100, 0.4)
    fill = colors().get(bar.style, colors()["unknown"])
    place = f'x="{x:.2f}" y="{y}" width="{width:.2f}" height="{height}"'
    rect = f'<rect {place} fill="{fill}"><title>{escape(bar.tip)}</title></rect>'
    letters = int((width - 8) / _CHARACTER)
    if not named or letters < 4:
        return rect
    label = bar.label if len(bar.label) <= letters else bar.label[: letters - 1] + "…"
    ink = "#fff" if bar.style in _DARK else "#1b1f24"
    return f'{rect}<text x="{x + 4:.1f}" y="{y + height / 2 + 4:.1f}" fill="{ink}">{escape(label)}</text>'


def _legend(entries: Iterable[tuple[str, str]], y: float) -> tuple[list[str], float]:
    """Draw what the styles mean, in as many lines as it takes; return them, and where what follows may begin."""
    parts, x = [], float(_MARGIN)
    for style, text in entries:
        width = 16 + len(text) * _CHARACTER + 18
        if x + width > _WIDTH - _MARGIN and x > _MARGIN:
            x, y = float(_MARGIN), y + _LINE
        fill = colors().get(style, colors()["unknown"])
        parts.append(f'<rect x="{x:.1f}" y="{y - 10}" width="11" height="11" rx="2" fill="{fill}"/>')
        parts.append(f'<text x="{x + 16:.1f}" y="{y}">{escape(text)}</text>')
        x += width
    return parts, y + _LINE


def _picture(parts: Iterable[str], height: float) -> Picture:
    drawn = "\n".join(parts)
    return Picture(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height:.0f}" '
        f'viewBox="0 0 {_WIDTH} {height:.0f}">\n<rect width="100%" height="100%" fill="white"/>\n'
        f'<g font-family="{_FONT}" font-size="11" fill="#1b1f24">\n{drawn}\n</g>\n</svg>\n'
    )
