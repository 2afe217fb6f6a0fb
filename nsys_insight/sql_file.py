"""What a file of SQL with a header is made of: a pack, a finding, a rule of ncu."""

from __future__ import annotations

import re

_HEADER = re.compile(r"\s*/\*(.*?)\*/", re.DOTALL)


def split(text: str) -> tuple[str | None, str]:
    """Give the TOML of the comment that a file begins with, None if it begins otherwise, and the statement after it."""
    header = _HEADER.match(text)
    return header and header[1], text[header.end() if header else 0 :].strip().removesuffix(";")


def flow(text: str) -> str:
    """Put the lines of a header's text into one."""
    return " ".join(text.split())
