"""Demangle the linker's names of kernels with the C++ runtime of this machine."""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import Any

# Names in hand-written programs are not longer.
_MAX_LENGTH = 20_000
# nvcc -rdc=true puts the source file before the names of its static kernels: __nv_static_25__HASH_4_k_cu_HASH__Z1kPf.
# The number is the length of the text between the underscore after it and the one before the name.
_STATIC_PREFIX = re.compile(r"__nv_static_(\d{1,4})_")


def demangle(name: str) -> str:
    """Demangle a linker's name (`_Z4copyPKfPfi`). Return other names unchanged, and all names without a C++ runtime.

    Of a static kernel, the name in the source is demangled, without the file that nvcc puts before it.
    """
    name = _remove_static_prefix(name)
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


def _remove_static_prefix(name: str) -> str:
    match = _STATIC_PREFIX.match(name)
    suffix = name[match.end() + int(match[1]) :] if match else ""
    return suffix[1:] if suffix.startswith("_") else name


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
