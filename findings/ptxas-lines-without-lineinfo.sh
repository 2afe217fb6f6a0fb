#!/usr/bin/env bash
# Question: does a cubin hold line numbers if ptxas was run without `-lineinfo` on PTX that has .loc?
# Guess:    no: .loc is dropped.
# Seen:     nvidia-cuda-nvcc 13.5.37, nvidia-cuda-nvdisasm 13.5.37. It holds the same line table as with `-lineinfo`,
#           and the text of the PTX, too (section .nv_debug_ptx_txt). The option matters for the front end that writes
#           the PTX.
# Meets:    whoever looks for the flag to know whether source lines are there, and whoever ships cubins made from PTX of
#           a compiler that always writes .loc: names of source files and the PTX go with them.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
bin=$(echo venv/lib/python3*/site-packages/nvidia/cu13/bin)
cat >lines.ptx <<'EOF'
.version 7.0
.target sm_50
.address_size 64
.file 1 "/src/first.cu"
.file 2 "/src/second.cuh"
.visible .entry kernel(.param .u64 out) {
.reg .b64 %a<3>; .reg .b32 %r<2>;
.loc 1 10 3
ld.param.u64 %a1, [out]; cvta.to.global.u64 %a2, %a1;
.loc 2 20 3
mov.u32 %r1, %tid.x;
.loc 1 30 3
st.global.u32 [%a2], %r1; ret; }
EOF
export PATH="$bin:$PATH"
lines() {
    nvdisasm -g "$1" | grep -oE 'File "[^"]+", line [0-9]+' | sed 's/File "\/src\///; s/", line /:/' | tr '\n' ' '
}
ptxas -arch=sm_90 lines.ptx -o without.cubin
ptxas -arch=sm_90 -lineinfo lines.ptx -o with.cubin
text=$(grep -ac nv_debug_ptx_txt without.cubin)
echo "CUDA 13.5.37: without -lineinfo $(lines without.cubin), with $(lines with.cubin), PTX text $text"
[ "$(lines without.cubin)" = "first.cu:10 second.cuh:20 first.cu:30 " ]
[ "$(lines with.cubin)" = "$(lines without.cubin)" ]
[ "$text" -gt 0 ]
