"""Demangle the linker's names of kernels with the C++ runtime of this machine."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

# Names in hand-written programs are not longer.
_MAX_LENGTH = 20_000


def demangle(name: str) -> str:
    """Demangle a linker's name (`_Z4copyPKfPfi`). Return other names unchanged, and all names without a C++ runtime."""
    demangler = _load_demangler()
    if demangler is None or not name.startswith("_Z") or len(name) > _MAX_LENGTH:
        return name
    import ctypes

    status = ctypes.c_int()
    pointer = demangler(name.encode(), None, None, ctypes.byref(status))
    if not pointer or status.value:
        return name
    text = ctypes.cast(pointer, ctypes.c_char_p).value or b""
    _load_free()(pointer)
    return text.decode("utf-8", "backslashreplace")


@cache
def _load_demangler() -> Any:
    """Load `__cxa_demangle` of the Itanium C++ ABI from the GNU or LLVM runtime; None if neither is installed."""
    import ctypes

    for library in ("libstdc++.so.6", "libc++.1.dylib", "libc++abi.so.1"):
        try:
            demangler = ctypes.CDLL(library)["__cxa_demangle"]
        except (OSError, AttributeError):
            continue
        demangler.restype = ctypes.c_void_p
        demangler.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p]
        return demangler
    return None


@cache
def _load_free() -> Any:
    import ctypes

    free = ctypes.CDLL("libSystem.dylib" if sys.platform == "darwin" else None).free
    free.argtypes, free.restype = [ctypes.c_void_p], None
    return free
