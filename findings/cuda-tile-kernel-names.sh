#!/usr/bin/env bash
# Question: what name and what block has a kernel of cuda-tile?
# Guess:    the name of the Python function, for each type and constant; 128 threads.
# Seen:     cuda-tile 1.7.0, nvidia-cuda-tileiras 13.5.37, nvidia-cuda-cuobjdump 13.5.37, compiled without a GPU. After
#           the function's name stand `_K`, the calling convention, and each parameter: an array with dimensions, type
#           and what is known of its strides, and the value of a constant (I256). Without num_worker_warps, the compiler
#           chooses the block: 128 threads for a sum, 256 for a matrix product on sm_100, 128 for the same on sm_80.
# Meets:    whoever filters a profile by the function's name: an exact match finds nothing, and each tile size is a
#           kernel of its own. Whoever computes threads from the tile's size.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq cuda-tile==1.7.0 nvidia-cuda-tileiras==13.5.37 nvidia-cuda-nvcc==13.5.37 nvidia-cuda-cuobjdump==13.5.37
bin=$(echo "$work"/venv/lib/python3*/site-packages/nvidia/cu13/bin)
cat >tiles.py <<'EOF'
import cuda.tile as ct
from cuda.tile.compilation import ArrayConstraint, CallingConvention, ConstantConstraint, KernelSignature, export_kernel


@ct.kernel
def double(x, y, size: ct.Constant[int]):
    tile = ct.load(x, index=(ct.bid(0),), shape=(size,))
    ct.store(y, index=(ct.bid(0),), tile=tile + tile)


@ct.kernel
def product(a, b, c, size: ct.Constant[int]):
    left = ct.load(a, index=(ct.bid(0), 0), shape=(size, size))
    right = ct.load(b, index=(0, 0), shape=(size, size))
    ct.store(c, index=(ct.bid(0), 0), tile=ct.mma(left, right, ct.full((size, size), 0.0, ct.float32)))


def export(kernel, types, dimensions, size, architecture, file):
    arrays = [
        ArrayConstraint(
            dtype, dimensions, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=(),
            may_alias_internally=False,
        )
        for dtype in types
    ]
    signature = KernelSignature([*arrays, ConstantConstraint(size)], CallingConvention.cutile_python_v1())
    export_kernel(kernel, [signature], file, gpu_code=architecture, output_format="cubin")


export(double, [ct.float32] * 2, 1, 256, "sm_100", "1.cubin")
export(double, [ct.float32] * 2, 1, 512, "sm_100", "2.cubin")
export(double, [ct.float16] * 2, 1, 256, "sm_90", "3.cubin")
export(product, [ct.float16, ct.float16, ct.float32], 2, 128, "sm_100", "4.cubin")
export(product, [ct.float16, ct.float16, ct.float32], 2, 128, "sm_80", "5.cubin")
EOF
venv/bin/python tiles.py
seen=""
for file in ?.cubin; do
    name=$("$bin/cuobjdump" -res-usage $file 2>&1 | grep -oE "Function \w+" | sed "s/Function //")
    threads=$("$bin/cuobjdump" -elf $file 2>&1 | grep -A2 EIATTR_REQNTID | grep -oE "0x[0-9a-f]+ 0x[0-9a-f]+ 0x[0-9a-f]+" | head -1)
    seen="$seen$name $((${threads%% *})) "
done
echo "cuda-tile 1.7.0, kernels and threads: $seen"
expected="double_Kt1_A1f32_1l0_A1f32_1l0_I256 128 double_Kt1_A1f32_1l0_A1f32_1l0_I512 128 double_Kt1_A1f16_1l0_A1f16_1l0_I256 128"
product=product_Kt1_A2f16_3l0_A2f16_3l0_A2f32_3l0_I128
[ "$seen" = "$expected $product 256 $product 128 " ]
