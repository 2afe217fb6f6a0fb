#!/usr/bin/env bash
# Question: what do `ptxas -v` and `nvlink -v` print for a kernel that calls a function of another file (nvcc
#           -rdc=true)?
# Guess:    ptxas the registers of the kernel alone (right), nvlink the final ones, in the form of ptxas and with the
#           same shared memory.
# Seen:     nvidia-cuda-nvcc 13.5.37, nvidia-cuda-cuobjdump 13.5.37. `ptxas -v` prints 24, a number for any call. The
#           linker raises it to what the called function needs: 211. `nvlink -v` prints that, in another form, and its
#           shared memory contains the reserved 1 KiB from sm_90 on (5024 for 4000). ptxas prints no registers at all
#           for the function that needs them.
# Meets:    whoever reads registers and occupancy from the log of a build with separate compilation: 24 registers stand
#           for any kernel with calls, and a profile shows more.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq nvidia-cuda-nvcc==13.5.37 nvidia-cuda-cuobjdump==13.5.37
bin=$(echo "$work"/venv/lib/python3*/site-packages/nvidia/cu13/bin)
export PATH="$bin:$PATH"

{
    printf '.version 8.0\n.target sm_90\n.address_size 64\n'
    echo ".extern .func (.reg .f32 r) heavy(.reg .u64 p);"
    echo ".visible .entry caller(.param .u64 in) {"
    echo ".reg .b64 %a<2>; .reg .b32 %r<2>; .reg .f32 %f<2>; .shared .align 4 .b8 buffer[4000];"
    echo "ld.param.u64 %a1, [in]; mov.u32 %r1, buffer; st.shared.u32 [%r1], %r1; bar.sync 0;"
    echo "call (%f1), heavy, (%a1); ld.shared.u32 %r1, [%r1+4]; st.global.f32 [%a1], %f1; st.global.u32 [%a1+4], %r1; ret; }"
} >caller.ptx
# A function that holds 100 values at a time.
{
    printf '.version 8.0\n.target sm_90\n.address_size 64\n'
    echo ".visible .func (.reg .f32 r) heavy(.reg .u64 p) { .reg .f32 %f<101>;"
    for i in {1..100}; do echo "ld.volatile.global.f32 %f$i, [p+$((4 * i))];"; done
    echo "mov.f32 r, %f1;"
    for i in {100..1}; do echo "fma.rn.f32 r, r, %f$i, %f$((101 - i));"; done
    echo "ret; }"
} >heavy.ptx
ptxas=$(ptxas -v -c -arch=sm_90 caller.ptx -o caller.cubin 2>&1 | grep -oE "Used [0-9]+ registers|[0-9]+ bytes smem" | tr '\n' ' ')
heavy=$(ptxas -v -c -arch=sm_90 heavy.ptx -o heavy.cubin 2>&1 | grep -cE "Used [0-9]+ registers" || true)
nvlink=$(nvlink -v -arch=sm_90 caller.cubin heavy.cubin -o linked.cubin 2>&1 | grep -oE "used [0-9]+ registers|[0-9]+ bytes smem" | tr '\n' ' ')
cuobjdump=$(cuobjdump -res-usage linked.cubin | grep -A1 "Function caller" | grep -oE "REG:[0-9]+|SHARED:[0-9]+" | tr '\n' ' ')
echo "CUDA 13.5.37: ptxas -v: $ptxas(heavy: $heavy lines); nvlink -v: $nvlink; cuobjdump: $cuobjdump"
[ "$ptxas$heavy" = "Used 24 registers 4000 bytes smem 0" ]
[ "$nvlink" = "used 211 registers 5024 bytes smem " ]
[ "$cuobjdump" = "REG:211 SHARED:5024 " ]
