#!/usr/bin/env bash
# Question: which line of the Python file do the instructions of a Triton kernel's loads have in the line table?
# Guess:    that of tl.load, also in a helper, which -gi shows with the line of the call.
# Seen:     triton 3.9.0, compiled without a GPU; nvidia-cuda-nvdisasm 13.5.37. A line further down. Triton writes a load
#           as inline PTX: one `mov` for each register that is loaded, in a line of its own, and then the load. In the
#           table, each line of that text is one line of the Python file: a load of one register is at the line after
#           tl.load, of two registers two lines below, of four registers four lines below (with a mask 0 to 3). That may
#           be another statement's line. Stores are right. triton 3.4.0 had the right lines for loads, too.
# Meets:    whoever reads stalls by source line, in ncu's source page or in disassembled code: the wait for memory stands
#           at an innocent statement below the load, and moves when a block becomes large enough to be loaded as vectors.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq triton==3.9.0 nvidia-cuda-nvdisasm==13.5.37
cat >lines.py <<'EOF'
import re
import subprocess
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def kernel(a, b, n, SIZE: tl.constexpr):
    cells = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    left = tl.load(a + cells)
    #
    #
    #
    #
    #
    right = tl.load(b + cells, mask=cells < n, other=0)
    #
    #
    #
    #
    #
    tl.store(a + cells, left * right)


def list_lines(size, element):
    """Return each access to global memory, and how many lines it is below its call."""
    source = ASTSource(
        fn=kernel,
        signature={"a": element, "b": element, "n": "i32", "SIZE": "constexpr"},
        constexprs={(3,): size},
        attrs={(number,): [["tt.divisibility", 16]] for number in range(3)},
    )
    with open("kernel.cubin", "wb") as file:
        file.write(triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["cubin"])
    code = subprocess.run(
        [sys.argv[1], "-g", "-c", "kernel.cubin"], capture_output=True, text=True, check=True
    ).stdout
    rows = re.findall(r'//## File "[^"]*", line (\d+)|\b((?:LDG|STG)[.\w]*)', code)
    line, accesses = 0, []
    for number, access in rows:
        line = int(number or line)
        if access:
            accesses.append((access, line))
    rows = enumerate(open(__file__), 1)
    calls = [number for number, text in rows if re.match(r"    .*tl\.(load|store)\(\w", text)]
    assert len(accesses) == len(calls) == 3
    return ", ".join(f"{access} +{line - call}" for (access, line), call in zip(accesses, calls))


seen = [list_lines(128, "*fp32"), list_lines(512, "*fp16"), list_lines(512, "*fp32")]
print("triton 3.9.0, lines below load, masked load and store:", "; ".join(seen))
assert seen == [
    "LDG.E +1, LDG.E +0, STG.E +0",
    "LDG.E.64 +2, LDG.E.64 +0, STG.E.64 +0",
    "LDG.E.128 +4, LDG.E.128 +3, STG.E.128 +0",
]
EOF
TRITON_DEFAULT_FP_FUSION=1 TRITON_CACHE_DIR="$work/cache" venv/bin/python lines.py \
    "$(echo "$work"/venv/lib/python3*/site-packages/nvidia/cu13/bin/nvdisasm)"
