"""Values as machines read them: nothing scaled, nothing rounded, and only what JSON can hold."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

_PLAIN = frozenset({bool, int, str, type(None)})


def plain(value: Any) -> Any:  # noqa: PLR0911 - one for each kind of value
    """Turn a value of any SQL type into None, bool, int, float, str, list or dict; NaN and infinity become None."""
    if type(value) in _PLAIN:
        return value
    match value:
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case bytes() | bytearray():
            return value.hex()
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return str(value)
