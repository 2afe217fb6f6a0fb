#!/usr/bin/env bash
# Question: how many threads has a block of a Triton kernel that is compiled with num_warps=4, if it specializes warps?
# Guess:    more than 128 (right). Nothing was guessed of how many, of registers and of other architectures.
# Seen:     triton 3.9.0, compiled without a GPU. 128 for an ordinary loop. With `tl.range(..., warp_specialize=True)`
#           384 on sm_90 and 256 on sm_100: the compiler adds warps, and the kernel's metadata says num_warps 12 and 8.
#           On sm_90 it limits the registers to 168 per thread, the most that fit 384 threads. On sm_80 the argument
#           changes nothing, without a word.
# Meets:    whoever computes launch configurations from the autotuner's num_warps: block size, occupancy and registers
#           in a profile differ from it, and from one GPU to the next.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq triton==3.9.0
cat >product.py <<'EOF'
import re

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def product(a, b, c, n, SIZE: tl.constexpr, SPECIALIZED: tl.constexpr):
    left = tl.make_tensor_descriptor(a, shape=[SIZE, n], strides=[n, 1], block_shape=[SIZE, SIZE])
    right = tl.make_tensor_descriptor(b, shape=[n, SIZE], strides=[SIZE, 1], block_shape=[SIZE, SIZE])
    total = tl.zeros((SIZE, SIZE), dtype=tl.float32)
    for start in tl.range(0, n, SIZE, warp_specialize=SPECIALIZED):
        total = tl.dot(left.load([0, start]), right.load([start, 0]), total)
    cells = tl.arange(0, SIZE)
    tl.store(c + cells[:, None] * SIZE + cells[None, :], total)


signature = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "n": "i32", "SIZE": "constexpr", "SPECIALIZED": "constexpr"}
seen = []
for capability in (80, 90, 100):
    for specialized in (False, True):
        source = ASTSource(fn=product, signature=signature, constexprs={(4,): 128, (5,): specialized})
        kernel = triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": 4})
        threads = re.search(r"\.reqntid (\d+)", kernel.asm["ptx"])[1]
        registers = re.search(r"\.maxnreg (\d+)", kernel.asm["ptx"])
        word = "specialized" if specialized else "ordinary"
        limit = f" maxnreg {registers[1]}" if registers else ""
        seen.append(f"sm_{capability} {word} {threads} threads, num_warps {kernel.metadata.num_warps}{limit}")
print("triton 3.9.0, num_warps=4:", "; ".join(seen))
assert seen == [
    "sm_80 ordinary 128 threads, num_warps 4",
    "sm_80 specialized 128 threads, num_warps 4",
    "sm_90 ordinary 128 threads, num_warps 4",
    "sm_90 specialized 384 threads, num_warps 12 maxnreg 168",
    "sm_100 ordinary 128 threads, num_warps 4",
    "sm_100 specialized 256 threads, num_warps 8 maxnreg 256",
]
EOF
TRITON_DEFAULT_FP_FUSION=1 TRITON_CACHE_DIR="$work/cache" venv/bin/python product.py
