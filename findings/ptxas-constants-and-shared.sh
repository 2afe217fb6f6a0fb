#!/usr/bin/env bash
# Question: do `ptxas -v` and `cuobjdump -res-usage` name the same constant and shared memory of a kernel?
# Guess:    yes; 536 bytes of constants on sm_90 for 8 bytes of parameters.
# Seen:     nvidia-cuda-nvcc 13.5.37, nvidia-cuda-cuobjdump 13.5.37. From sm_90 on `ptxas -v` says nothing of constants
#           (on sm_80: "360 bytes cmem[0]"), while `-res-usage` says CONSTANT[0]:536. For a kernel with 4000 bytes of
#           shared memory `ptxas -v` says "4000 bytes smem" and `-res-usage` says SHARED:5024: with the 1 KiB that the
#           system reserves. For a kernel without shared memory `-res-usage` says SHARED:0. On sm_80 both say 4000.
# Meets:    whoever computes occupancy from a build log: 1 KiB per block is missing. Whoever takes `-res-usage` and adds
#           the reserved 1 KiB counts it twice. A parser that wants cmem[0] finds it on old architectures only.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq nvidia-cuda-nvcc==13.5.37 nvidia-cuda-cuobjdump==13.5.37
bin=$(echo venv/lib/python3*/site-packages/nvidia/cu13/bin)

# Writes a kernel: its name, its shared memory in bytes, the barrier that it waits at (empty: none).
kernel() {
    echo ".visible .entry $1(.param .u64 out) {"
    echo ".reg .b64 %a<3>; .reg .b32 %r<4>;"
    [ "$2" = 0 ] || echo ".shared .align 4 .b8 $1_shared[$2];"
    echo "ld.param.u64 %a1, [out]; cvta.to.global.u64 %a2, %a1; mov.u32 %r1, %tid.x;"
    [ "$2" = 0 ] || echo "mov.u32 %r2, $1_shared; st.shared.u32 [%r2], %r1;"
    [ -z "$3" ] || echo "bar.sync $3;"
    [ "$2" = 0 ] || echo "ld.shared.u32 %r1, [%r2+4];"
    echo "st.global.u32 [%a2], %r1; ret; }"
}
{ printf '.version 7.0\n.target sm_50\n.address_size 64\n'; kernel plain 0 ""; kernel shared 4000 0; } >two.ptx
usage() {
    "$bin/ptxas" -v -arch=sm_$1 two.ptx -o two.cubin 2>&1 | grep -oE "[0-9]+ bytes (smem|cmem\[0\])" | tr '\n' ';'
    "$bin/cuobjdump" -res-usage two.cubin | grep -oE "SHARED:[0-9]+|CONSTANT\[0\]:[0-9]+" | tr '\n' ';'
}
seen="sm_80 $(usage 80) sm_90 $(usage 90)"
old="4000 bytes smem;360 bytes cmem[0];360 bytes cmem[0];SHARED:4000;CONSTANT[0]:360;SHARED:0;CONSTANT[0]:360;"
new="4000 bytes smem;SHARED:5024;CONSTANT[0]:536;SHARED:0;CONSTANT[0]:536;"
echo "ptxas and cuobjdump 13.5.37: $seen"
[ "$seen" = "sm_80 $old sm_90 $new" ]
