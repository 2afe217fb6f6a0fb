#!/usr/bin/env bash
# Question: how many registers has a kernel with __launch_bounds__(256) that is compiled with -maxrregcount=32?
# Guess:    32: a bound on the block alone, without the blocks per SM, sets no limit of its own, so the option's holds.
# Seen:     nvidia-cuda-nvcc 13.5.37, on PTX with .maxntid and .reqntid, which these bounds become. As many as without
#           the option: 106, and ptxas says nothing of it (for a bound that sets a limit, such as 1024 threads, it
#           prints "Overriding global maxrregcount"). Any bound takes a kernel out of the option. Without a bound it has
#           32; and with -maxrregcount=16 24, the least on sm_90.
# Meets:    whoever lowers -maxrregcount of a build to raise the occupancy: Triton, CUTLASS and all code with launch
#           bounds keep their registers. Bounds of the kernel, or .maxnreg (__maxnreg__), are the way.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq nvidia-cuda-nvcc==13.5.37
bin=$(echo "$work"/venv/lib/python3*/site-packages/nvidia/cu13/bin)

# Writes a kernel that holds 100 values at a time: its name, its bounds.
kernel() {
    echo ".visible .entry $1(.param .u64 in) $2 { .reg .b64 %a<2>; .reg .f32 %f<101>; .reg .f32 %s; ld.param.u64 %a1, [in];"
    for i in {1..100}; do echo "ld.volatile.global.f32 %f$i, [%a1+$((4 * i))];"; done
    echo "mov.f32 %s, %f1;"
    for i in {100..1}; do echo "fma.rn.f32 %s, %s, %f$i, %f$((101 - i));"; done
    echo "st.global.f32 [%a1], %s; ret; }"
}
# Prints the registers of each kernel, and how many messages name an override.
registers() {
    "$bin/ptxas" -v -arch=sm_90 "$@" bounds.ptx -o bounds.cubin >log 2>&1
    grep -oE "entry function '[a-z]+|Used [0-9]+" log | sed "s/entry function '//; s/Used //" | paste -sd' ' | tr '\n' ' '
    grep -c "Overriding global" log || true
}
{
    printf '.version 8.0\n.target sm_90\n.address_size 64\n'
    kernel plain ""
    kernel most ".maxntid 256"
    kernel exact ".reqntid 256"
} >bounds.ptx
none=$(registers)
low=$(registers -maxrregcount=32)
least=$(registers -maxrregcount=16)
echo "ptxas 13.5.37, registers and messages: none: $none; -maxrregcount=32: $low; -maxrregcount=16: $least"
[ "$none" = "exact 106 most 106 plain 106 0" ]
[ "$low" = "exact 106 most 106 plain 32 0" ]
[ "$least" = "exact 106 most 106 plain 24 0" ]
