#!/usr/bin/env bash
# Question: on what does the linker's name of a numba-cuda kernel depend, besides function and types?
# Guess:    on a counter of compilations. Nothing was guessed of the options.
# Seen:     numba-cuda 0.30.4, numba 0.68.1. The counter is there (B2v1, B2v2), and the options of the compiler are in
#           the name, too, packed in a text: `lineinfo=True`, `fastmath=True` and `debug=True` each give another one.
#           "cudapy" is gone: the name begins with the module.
# Meets:    whoever profiles with `lineinfo=True` to see source lines, and compares with a profile without: all kernels
#           have new names. Filters by "cudapy" find nothing.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq "numba-cuda[cu13]==0.30.4" numba==0.68.1 nvidia-nvvm==13.5.37 nvidia-cuda-nvrtc==13.5.37
cat >names.py <<'EOF'
import re

from numba import cuda, types


def add(x, y):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += y


def compile_name(**options):
    signature = types.void(types.float32[::1], types.float32)
    ptx, _ = cuda.compile(add, signature, cc=(9, 0), device=False, abi="numba", output="ptx", **options)
    return re.search(r"\.entry (\w+)", ptx)[1]


names = [
    compile_name(),
    compile_name(),
    compile_name(lineinfo=True),
    compile_name(fastmath=True),
    compile_name(debug=True, opt=False),
]
parts = [re.fullmatch(r"_ZN8__main__3addB2v(\d)B\d+(\w+?)E5Array\w+", name) for name in names]
counters = [int(part[1]) for part in parts]
options = [part[2] for part in parts]
print(
    f"numba-cuda 0.30.4: counters {counters}; {len(set(options))} texts of options in {len(options)} names,",
    f"the first two equal: {options[0] == options[1]}; cudapy: {'cudapy' in names[0]}; begin {names[0][:17]}",
)
assert counters == [1, 2, 3, 4, 5]
assert len(set(options)) == 4
assert options[0] == options[1]
assert "cudapy" not in "".join(names)
EOF
venv/bin/python names.py
