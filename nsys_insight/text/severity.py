"""Colors for words of severity. The word is always printed; the color only makes it easier to see."""

from __future__ import annotations

import re

# Styles of rich, in the sixteen colors of a terminal's theme.
STYLES = {
    **dict.fromkeys(("critical", "broken", "regressed", "revert"), "bold red"),
    **dict.fromkeys(("warning", "unknown", "refused"), "yellow"),
    **dict.fromkeys(("ok", "improved", "accept"), "green"),
    "info": "cyan",
}
# The columns whose cells are words of severity.
COLUMNS = frozenset({"severity", "verdict"})
_CODES = {"bold red": "1;31", "yellow": "33", "green": "32", "cyan": "36"}
_FINDING_SEVERITY = re.compile(r"^(\d+\. )(CRITICAL|WARNING|INFO)\b", re.MULTILINE)


def color_severities(text: str) -> str:
    """Color the severity in front of each finding of a diagnosis."""
    return _FINDING_SEVERITY.sub(
        lambda match: f"{match[1]}\x1b[{_CODES[STYLES[match[2].lower()]]}m{match[2]}\x1b[0m", text
    )
