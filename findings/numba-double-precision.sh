#!/usr/bin/env bash
# Question: which expressions of a float32 array and constants give fp64 instructions in a kernel of numba-cuda?
# Guess:    all with a Python number, such as `x * 2`, `max(x, 0)`, `x ** 0.5`, and `x + i` with an int32; not `x ** 2`
#           and `math.sqrt(x)`.
# Seen:     numba-cuda 0.30.4, numba 0.68.1, for sm_90. `x * 2` and `x * 2.0` have none: the types are float64, but the
#           compiler proves that the result in float32 is the same. It cannot for `math.pi * x`, `max(x, 0)`, `x + i`, and
#           a sum that begins at `s = 0`. `x % 2` has 16, `x // 2` has 30, and `math.pow(x, 2)` and `x ** 0.5` become a
#           function with about 146. `x ** 2` has none.
# Meets:    whoever looks for fp64 in a kernel with float32 arrays, which runs at 1/64 of the rate on GeForce GPUs: the
#           literals that catch the eye are free, and a sum that begins with 0 or a maximum with 0 is not.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq "numba-cuda[cu13]==0.30.4" numba==0.68.1 nvidia-nvvm==13.5.37 nvidia-cuda-nvrtc==13.5.37
cat >kernels.py <<'EOF'
import math

from numba import cuda, types

expressions = {
    "x[0] * 2": 0,
    "x[0] * 2.0": 0,
    "1 / x[0]": 0,
    "x[0] ** 2": 0,
    "math.sqrt(x[0])": 0,
    "max(x[0], x[1])": 0,
    "math.pi * x[0]": 4,
    "max(x[0], 0)": 5,
    "x[0] + i": 5,
    "x[0] % 2": 16,
    "x[0] // 2": 30,
    "math.pow(x[0], 2)": 146,
    "x[0] ** 0.5": 147,
}
bodies = {text: f"    x[0] = {text}\n" for text in expressions}
for start, count in (("0", 14), ("x[1]", 0)):
    expressions[f"s = {start}"] = count
    bodies[f"s = {start}"] = f"    s = {start}\n    for j in range(i):\n        s += x[j]\n    x[0] = s\n"
signature = types.void(types.float32[::1], types.int32)
seen = {}
for text, body in bodies.items():
    names = {"math": math}
    exec(f"def kernel(x, i):\n{body}", names)
    ptx, _ = cuda.compile(names["kernel"], signature, cc=(9, 0), device=False, abi="numba", output="ptx")
    seen[text] = ptx.count(".f64")
print("numba-cuda 0.30.4, fp64 in the PTX:", ", ".join(f"{text}: {count}" for text, count in seen.items()))
assert seen == expressions
EOF
venv/bin/python kernels.py
