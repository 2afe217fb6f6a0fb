#!/usr/bin/env bash
# Question: what does "used N barriers" in `ptxas -v` count?
# Guess:    the barriers that the kernel uses: 1 for a kernel that waits at barrier 5 only.
# Seen:     nvidia-cuda-nvcc 13.5.37. It is the highest number plus one: barrier 5 alone is "used 6 barriers". A barrier
#           whose number is in a register counts as all 16. Without a barrier: "used 0 barriers".
# Meets:    whoever compares it with the 16 barriers of a block, or takes 16 for 16 synchronizations.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq nvidia-cuda-nvcc==13.5.37
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
{ printf '.version 7.0\n.target sm_50\n.address_size 64\n'; kernel none 0 ""; kernel fifth 0 5; kernel any 0 %r1; } >three.ptx
seen=$("$bin/ptxas" -v -arch=sm_90 three.ptx -o three.cubin 2>&1 |
    grep -oE "entry function '[a-z]+'|used [0-9]+ barriers" | sed "s/entry function //" | tr '\n' ' ')
echo "ptxas 13.5.37: $seen"
[ "$seen" = "'any' used 16 barriers 'fifth' used 6 barriers 'none' used 0 barriers " ]
