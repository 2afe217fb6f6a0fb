"""NumPy, and the types of the arrays of facts. A module of facts is imported only when it is needed, and NumPy with it.

At the import of NumPy, each thread of OpenBLAS waits in a loop, for 30 ms of CPU time, for work that no fact has. A
variable ends the wait. Only the import reads it, and programs that are started later do not get it.
"""

from __future__ import annotations

import os
from typing import Any

_VARIABLE = "OPENBLAS_THREAD_TIMEOUT"
_is_unset = _VARIABLE not in os.environ
if _is_unset:
    os.environ[_VARIABLE] = "4"  # the exponent of the number of rounds; less is not allowed

import numpy as np  # noqa: E402 - after the variable

if _is_unset:
    del os.environ[_VARIABLE]

Flags = np.ndarray[Any, np.dtype[np.bool_]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["Flags", "Ints", "np"]
