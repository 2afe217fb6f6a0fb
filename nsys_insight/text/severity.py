"""Colours for words that say how serious something is: the word is always there, the colour only helps the eye."""

from __future__ import annotations

import re

# Names of rich's styles, of the sixteen colours that a terminal's theme has.
STYLES = {
    **dict.fromkeys(("critical", "broken", "regressed", "worse", "revert"), "bold red"),
    **dict.fromkeys(("warning", "unknown", "refused"), "yellow"),
    **dict.fromkeys(("ok", "improved", "better", "accept"), "green"),
    "info": "cyan",
}
# The columns whose cells are such words.
COLUMNS = frozenset({"severity", "verdict"})
_CODES = {"bold red": "1;31", "yellow": "33", "green": "32", "cyan": "36"}
_OF_A_FINDING = re.compile(r"^(\d+\. )(CRITICAL|WARNING|INFO)\b", re.MULTILINE)


def colored(text: str) -> str:
    """Colour the severity that stands before each finding of a diagnosis."""
    return _OF_A_FINDING.sub(lambda found: f"{found[1]}\x1b[{_CODES[STYLES[found[2].lower()]]}m{found[2]}\x1b[0m", text)
