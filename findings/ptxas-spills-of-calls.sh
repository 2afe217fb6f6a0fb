#!/usr/bin/env bash
# Question: what do `ptxas -v` and `cuobjdump -res-usage` tell of a recursive function that needs few registers?
# Guess:    a warning, and a stack for one level of the recursion by both. Nothing was guessed of spills.
# Seen:     nvidia-cuda-nvcc 13.5.37, nvidia-cuda-cuobjdump 13.5.37, nvidia-cuda-nvdisasm 13.5.37. ptxas: spill stores
#           and loads of 16 bytes for the function, with 255 registers allowed: registers that a call must keep count as
#           spills. They stand in the function's line. The kernel's own line has 0 bytes of spills and of stack, and no
#           cumulative stack size; a warning says that it is not known. cuobjdump: STACK:UNKNOWN, no number.
# Meets:    whoever fights spills: these do not go away with more registers. Whoever reads the lines of kernels alone: 0
#           spills, while each call stores and loads local memory. A parser that wants digits after STACK: loses the
#           kernel.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq nvidia-cuda-nvcc==13.5.37 nvidia-cuda-cuobjdump==13.5.37 nvidia-cuda-nvdisasm==13.5.37
bin=$(echo "$work"/venv/lib/python3*/site-packages/nvidia/cu13/bin)
export PATH="$bin:$PATH"
cat >sum.ptx <<'EOF'
.version 8.0
.target sm_90
.address_size 64
.func (.reg .u32 r) down(.reg .u32 n) {
.reg .u32 %r<3>; .reg .pred p;
mov.u32 r, 0; setp.eq.u32 p, n, 0; @p ret;
sub.u32 %r1, n, 1; call (%r2), down, (%r1); add.u32 r, %r2, n; ret; }
.visible .entry kernel(.param .u64 out) {
.reg .b64 %a<2>; .reg .u32 %r<3>;
ld.param.u64 %a1, [out]; ld.global.u32 %r1, [%a1]; call (%r2), down, (%r1); st.global.u32 [%a1], %r2; ret; }
EOF
ptxas -v -arch=sm_90 -maxrregcount=255 sum.ptx -o sum.cubin >log 2>&1
spills() { grep -A1 "properties for $1" log | grep -oE "[0-9]+ bytes (stack frame|spill stores)" | tr '\n' ' '; }
warning=$(grep -c "cannot be statically determined" log)
registers=$(grep -oE "Used [0-9]+" log)
usage=$(cuobjdump -res-usage sum.cubin | grep -oE "STACK:\w+")
local=$(nvdisasm -c sum.cubin | grep -cE "STL|LDL")
seen="kernel $(spills kernel)$registers, warnings $warning; function $(spills down); $usage; STL and LDL $local"
echo "CUDA 13.5.37: $seen"
expected="kernel 0 bytes stack frame 0 bytes spill stores Used 24, warnings 1"
[ "$seen" = "$expected; function 16 bytes stack frame 16 bytes spill stores ; STACK:UNKNOWN; STL and LDL 8" ]
