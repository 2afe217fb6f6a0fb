#!/usr/bin/env bash
# Question: in which order do the kernels of one PTX file stand in the cubin, in `ptxas -v` and in listings of SASS?
# Guess:    in the order of the PTX.
# Seen:     nvidia-cuda-nvcc 13.5.37, nvidia-cuda-cuobjdump 13.5.37, nvidia-cuda-nvdisasm 13.5.37. In the reverse order,
#           in all three. The order of the images in a fat binary stays.
# Meets:    whoever pairs kernels of the source with listings by position, or compares two listings line by line.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq nvidia-cuda-nvcc==13.5.37 nvidia-cuda-cuobjdump==13.5.37 nvidia-cuda-nvdisasm==13.5.37
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
{ printf '.version 7.0\n.target sm_50\n.address_size 64\n'; for name in k2 k0 k3 k1; do kernel $name 0 ""; done; } >four.ptx
export PATH="$bin:$PATH"
log=$(ptxas -v -arch=sm_90 four.ptx -o four.cubin 2>&1 | grep -oE "entry function 'k." | sed "s/.*'//" | tr '\n' ' ')
nvdisasm=$(nvdisasm four.cubin | grep -oE "^\.text\.k." | sed "s/.*\.//" | tr '\n' ' ')
cuobjdump=$(cuobjdump -sass four.cubin | grep -oE "Function : k." | sed "s/.* //" | tr '\n' ' ')
echo "CUDA 13.5.37, PTX k2 k0 k3 k1: ptxas -v $log, nvdisasm $nvdisasm, cuobjdump $cuobjdump"
[ "$log|$nvdisasm|$cuobjdump" = "k1 k3 k0 k2 |k1 k3 k0 k2 |k1 k3 k0 k2 " ]
