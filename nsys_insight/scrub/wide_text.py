"""Text of two or four bytes for each character (UTF-16, UTF-32) in cells that are not text, as Windows writes it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CODECS = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
# Four or more characters of Western European languages, with the lower or the higher byte first.
_RUNS = [
    re.compile(rb"(?:[\x09\x0a\x0d\x20-\x7e\xa0-\xff]%b){4,}" % zeros)
    for zeros in (rb"\x00\x00\x00", rb"\x00(?!\x00\x00)")
] + [
    re.compile(rb"(?:%b[\x09\x0a\x0d\x20-\x7e\xa0-\xff]){4,}" % zeros)
    for zeros in (rb"\x00\x00\x00", rb"\x00")
]  # fmt: skip
# Shorter texts are wide only if they are ASCII: two bytes of a number are also a character.
_MIN_LENGTH = 4
_LAST_LATIN = "\u024f"


def decode_wide(cell: bytes) -> tuple[str, str] | None:
    """Return the text of a cell that is entirely wide text, and its codec. None for any other cell."""
    if b"\0" not in cell and cell[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        return None
    for codec in _CODECS:
        try:
            text = cell.decode(codec)
        except UnicodeError:
            continue
        characters = text.removeprefix("\ufeff").replace("\0", "\n")
        if len(characters) < _MIN_LENGTH and not (len(characters) > 1 and characters.isascii()):
            continue
        is_marked = characters != text and text[0] == "\ufeff"
        is_text = all(char.isprintable() or char in "\t\r\n" for char in characters)
        if is_text and (is_marked or 2 * sum(char <= _LAST_LATIN for char in characters) > len(characters)):
            return text, codec
    return None


def find_wide(cell: bytes) -> Iterator[str]:
    """Yield the wide texts within a cell of other data."""
    if b"\0" in cell:
        for pattern in _RUNS:
            for match in pattern.finditer(cell):
                yield match[0].replace(b"\0", b"").decode("latin-1")


def rewrite_wide(cell: bytes, rewrite: Callable[[str], str]) -> bytes | None:
    """Return a cell whose wide text is rewritten: nothing, if the text is among other data. None if it has none."""
    if wide := decode_wide(cell):
        text, codec = wide
        mark = text[:1] if text[:1] == "\ufeff" else ""
        return (mark + rewrite(text.removeprefix(mark))).encode(codec)
    return b"" if any(rewrite(text) != text for text in find_wide(cell)) else None
