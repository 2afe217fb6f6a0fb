#!/usr/bin/env bash
# Question: what does the nvtx package do with a payload that is a NumPy number, a bool, or an integer from 2^63 on?
# Guess:    a NumPy number is accepted, True is 1, 2^64 is refused.
# Seen:     nvtx 0.2.17, numpy 2.4.0, nvidia-cuda-cupti 13.5.25 as the tool. It depends on whether a tool is attached.
#           Without: everything passes in silence. With one: NumPy numbers (float64 too, which is a float) and bools are
#           dropped, with a warning; 2^63 raises OverflowError. A one-dimensional NumPy array is accepted.
# Meets:    whoever annotates steps with a loss or a counter from NumPy: the program is right without the profiler;
#           under it the payloads are missing, or the program ends. `int(x)` or `float(x)` at the call helps.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq nvtx==0.2.17 numpy==2.4.0 nvidia-cuda-cupti==13.5.25
cat >payloads.py <<'EOF'
import warnings

import numpy as np
import nvtx

results = []
for payload in (5, 1.5, np.int64(5), np.float64(1.5), True, np.array([1, 2]), 2**63):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            nvtx.mark("m", payload=payload)
            result = "dropped" if caught else "ok"
        except OverflowError:
            result = "OverflowError"
    results.append(f"{type(payload).__name__} {result}")
print(", ".join(results))
EOF
without=$(venv/bin/python payloads.py)
tool=$(echo "$work"/venv/lib/python3*/site-packages/nvidia/cu13/lib/libcupti.so.13)
with=$(NVTX_INJECTION64_PATH="$tool" venv/bin/python payloads.py)
echo "nvtx 0.2.17 without a tool: $without; with: $with"
[ "$without" = "int ok, float ok, int64 ok, float64 ok, bool ok, ndarray ok, int ok" ]
[ "$with" = "int ok, float ok, int64 dropped, float64 dropped, bool dropped, ndarray ok, int OverflowError" ]
