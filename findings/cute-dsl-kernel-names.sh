#!/usr/bin/env bash
# Question: what name has a kernel of CuTe DSL that is compiled for two values of a compile-time constant?
# Guess:    the same name for both. Nothing was guessed of layouts and functions as constants.
# Seen:     nvidia-cutlass-dsl 4.8.1, compiled without a GPU. Constants and the layout of each tensor are in the name,
#           but only letters and digits of them, and nothing between numbers. Shape 256 with stride 1, shape 25 with
#           stride 61, and shape 2 with stride 561 are all "2561"; 2 and -2 are both "2", 2.5 and 25 both "25"; each
#           lambda is "functionlambdaat". So different code has one name, in one program.
# Meets:    whoever sums up or filters kernels of a profile by name: variants for other layouts, signs or epilogues are
#           one kernel with two durations.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq nvidia-cutlass-dsl==4.8.1
mkdir kept
cat >names.py <<'EOF'
import re
from pathlib import Path

import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import make_fake_tensor


@cute.kernel
def scale(x: cute.Tensor, argument: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    if cutlass.const_expr(callable(argument)):
        x[thread] = argument(x[thread])
    else:
        x[thread] = x[thread] * cutlass.Float32(argument)


@cute.jit
def launch(x: cute.Tensor, argument: cutlass.Constexpr):
    scale(x, argument).launch(grid=[1, 1, 1], block=[128, 1, 1])


def compile_kernel(argument, shape=256, stride=1):
    """Return the name and the text of the PTX."""
    tensor = make_fake_tensor(cutlass.Float32, (shape,), stride=(stride,), assumed_align=16)
    ptx = cute.compile(launch, tensor, argument).__ptx__
    ptx = Path(ptx).read_text() if Path(ptx[:200]).is_file() else ptx
    return re.search(r"\.entry (\w+)", ptx)[1], ptx


cases = {
    "constants 2, -2": [compile_kernel(2), compile_kernel(-2)],
    "constants 25, 2.5": [compile_kernel(25), compile_kernel(2.5)],
    "layouts 256:1, 25:61, 2:561": [compile_kernel(2), compile_kernel(2, 25, 61), compile_kernel(2, 2, 561)],
    "two lambdas": [compile_kernel(lambda value: value + value), compile_kernel(lambda value: value * value)],
}
seen = {
    case: (sorted({name.removeprefix("kernel_cutlass_") for name, _ in kernels}), len({ptx for _, ptx in kernels}))
    for case, kernels in cases.items()
}
print("nvidia-cutlass-dsl 4.8.1, names and how many texts of PTX:", seen)
prefix = "scale_tensorptrf32gmemalign16o2561"
assert seen == {
    "constants 2, -2": ([f"{prefix}_2_0"], 2),
    "constants 25, 2.5": ([f"{prefix}_25_0"], 2),
    "layouts 256:1, 25:61, 2:561": ([f"{prefix}_2_0"], 3),
    "two lambdas": ([f"{prefix}_functionlambdaat_0"], 2),
}
EOF
CUTE_DSL_ARCH=sm_90a CUTE_DSL_NO_CACHE=1 CUTE_DSL_KEEP=ptx CUTE_DSL_DUMP_DIR="$work/kept" venv/bin/python names.py
