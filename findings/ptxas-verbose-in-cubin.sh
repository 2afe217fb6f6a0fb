#!/usr/bin/env bash
# Question: does `ptxas -v`, which only prints, change the cubin?
# Guess:    none was written. That other file names give the same bytes was guessed, and is right.
# Seen:     nvidia-cuda-nvcc 13.5.37, nvidia-cuda-cuobjdump 13.5.37. The command line is in a note of the cubin (without
#           file names), so `-v` changes its bytes and its hash. The instructions are the same.
# Meets:    whoever compares cubins, or has a cache by hash of the cubin, and turns on `-v` in one of two builds.
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
{ printf '.version 7.0\n.target sm_50\n.address_size 64\n'; kernel one 0 ""; } >one.ptx
export PATH="$bin:$PATH"
ptxas -arch=sm_90 one.ptx -o a.cubin
ptxas -arch=sm_90 one.ptx -o b.cubin
ptxas -v -arch=sm_90 one.ptx -o v.cubin 2>/dev/null
note() { cuobjdump -elf "$1" | grep -oE "Tool Command Line Arguments:.*" | tr -s ' '; }
same() { cmp -s "$1" "$2" && echo same || echo differ; }
code() { nvdisasm "$1" | sed '/-arch sm_90/d'; }
sass=$(diff <(code a.cubin) <(code v.cubin) >/dev/null && echo same || echo differ)
seen="other name: $(same a.cubin b.cubin), -v: $(same a.cubin v.cubin), instructions $sass"
echo "ptxas 13.5.37: $seen; $(note a.cubin) against $(note v.cubin)"
[ "$seen" = "other name: same, -v: differ, instructions same" ]
note v.cubin | grep -q -- "-v -arch sm_90"
