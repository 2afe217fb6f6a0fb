#!/usr/bin/env bash
# Question: what is in NVRTC's lowered name of a kernel in an unnamed namespace?
# Guess:    the program's name, and a hash that changes with the text.
# Seen:     nvidia-cuda-nvrtc 13.5.37. The program's name without its folder, but instead of the text the process ID and
#           a hash of the time: the same program has another name in each process, and in one process a second later. If
#           the program has a function that others can see, even an empty one, the hash is of its name, and the process
#           ID is left out: then the kernel's name is the same everywhere. The text is in neither of them.
# Meets:    whoever compares profiles of two runs by the linker's name, or caches by it: each run has new kernels. And
#           different kernels in programs of one name with the same visible function have one name.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq nvidia-cuda-nvrtc==13.5.37
cat >names.py <<'EOF'
import ctypes
import os
import re
import time
from pathlib import Path

import nvidia.cu13

nvrtc = ctypes.CDLL(str(next(Path(next(iter(nvidia.cu13.__path__))).glob("lib/libnvrtc.so.13*"))))


def lower(value, more_text="", file="folder/a.cu"):
    """Return the name of a kernel that stores `value`."""
    program, lowered = ctypes.c_void_p(), ctypes.c_char_p()
    text = f"namespace {{ __global__ void hidden(float *p) {{ *p = {value}; }} }} {more_text}"
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), file.encode(), 0, None, None) == 0
    assert nvrtc.nvrtcAddNameExpression(program, b"hidden") == 0
    assert nvrtc.nvrtcCompileProgram(program, 1, (ctypes.c_char_p * 1)(b"-arch=sm_90")) == 0
    assert nvrtc.nvrtcGetLoweredName(program, b"hidden", ctypes.byref(lowered)) == 0
    return lowered.value.decode()


alone = [lower(1)]
time.sleep(2.1)
alone.append(lower(1))
parts = [re.fullmatch(r"_ZN\d\d_GLOBAL__N__00000000_4_a_cu_([0-9a-f]{8})_(\d+)6hiddenEPf", name) for name in alone]
first, second = (part[1] for part in parts)
has_process = all(part[2] == str(os.getpid()) for part in parts)
visible = "__global__ void visible() {}"
with_function = [lower(1, visible), lower(2, visible), lower(1, visible.replace("visible", "other"))]
print(has_process, first != second, with_function[0], with_function[1] == with_function[0], with_function[2])
EOF
seen=$(venv/bin/python names.py)
again=$(venv/bin/python names.py)
echo "NVRTC 13.5.37: process ID and changing hash; the names with a visible function: $seen"
expected="True True _ZN36_GLOBAL__N__00000000_4_a_cu_782c9ec16hiddenEPf True"
[ "$seen" = "$expected _ZN36_GLOBAL__N__00000000_4_a_cu_944e1d286hiddenEPf" ]
[ "$seen" = "$again" ]
