"""C++ names of kernels from the linker's, by the C++ runtime of this machine."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

# Longer names do not come from programs that people write.
_LONGEST = 20_000


def demangled(name: str) -> str:
    """Demangle a linker's name (`_Z4copyPKfPfi`); return any other name, or without a C++ runtime, unchanged."""
    function = _function()
    if function is None or not name.startswith("_Z") or len(name) > _LONGEST:
        return name
    import ctypes

    status = ctypes.c_int()
    made = function(name.encode(), None, None, ctypes.byref(status))
    if not made or status.value:
        return name
    text = ctypes.cast(made, ctypes.c_char_p).value or b""
    _free()(made)
    return text.decode("utf-8", "backslashreplace")


@cache
def _function() -> Any:
    """`__cxa_demangle` of the Itanium C++ ABI, which the runtimes of GNU and LLVM have; None if there is neither."""
    import ctypes

    for library in ("libstdc++.so.6", "libc++.1.dylib", "libc++abi.so.1"):
        try:
            found = ctypes.CDLL(library)["__cxa_demangle"]
        except (OSError, AttributeError):
            continue
        found.restype = ctypes.c_void_p
        found.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p]
        return found
    return None


@cache
def _free() -> Any:
    import ctypes

    found = ctypes.CDLL("libSystem.dylib" if sys.platform == "darwin" else None).free
    found.argtypes, found.restype = [ctypes.c_void_p], None
    return found
