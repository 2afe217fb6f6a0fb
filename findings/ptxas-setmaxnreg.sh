#!/usr/bin/env bash
# Question: what becomes of `setmaxnreg` in a kernel without a limit of its registers, and what does `ptxas -v` print?
# Guess:    without a limit: a message that names the kernel, and no such instructions. With one: the registers of the
#           limit. It was not guessed which bounds are a limit.
# Seen:     nvidia-cuda-nvcc 13.5.37, nvidia-cuda-nvdisasm 13.5.37. The bound on the threads alone, as
#           __launch_bounds__(384) writes it, is none: the instructions are left out. The message has no name of a
#           kernel, is called "info", and stands before all kernels of the file. Together with the least blocks per SM,
#           __launch_bounds__(384, 1), it is a limit: 168 registers, which `-v` prints, and the instructions stay;
#           .maxnreg does as well. -maxrregcount=168 alone does not.
# Meets:    whoever specializes warps: a forgotten second argument takes the registers from all of them, without a
#           warning, and in a file of many kernels nothing tells which one lost them.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
bin=$(echo "$work"/venv/lib/python3*/site-packages/nvidia/cu13/bin)

# Compiles a kernel whose first four warps give registers to the others: its bounds, then options of ptxas. Prints the
# registers, the instructions that change them, and the messages without and with the kernel's name.
compile() {
    cat >warps.ptx <<EOF
.version 8.6
.target sm_90a
.address_size 64
.visible .entry kernel(.param .u64 out) $1 {
.reg .b64 %a<2>; .reg .b32 %r<3>; .reg .pred %p;
ld.param.u64 %a1, [out]; mov.u32 %r1, %tid.x; setp.lt.u32 %p, %r1, 128; @%p bra LOW;
setmaxnreg.inc.sync.aligned.u32 232; ld.global.u32 %r2, [%a1]; add.u32 %r2, %r2, %r1; st.global.u32 [%a1], %r2; bra.uni END;
LOW: setmaxnreg.dec.sync.aligned.u32 40; st.global.u32 [%a1+4], %r1;
END: ret; }
EOF
    "$bin/ptxas" -v -arch=sm_90a "${@:2}" warps.ptx -o warps.cubin >log 2>&1
    local messages named
    messages=$(grep -c "info .*'setmaxnreg' ignored" log || true)
    named=$(grep "setmaxnreg" log | grep -c "kernel" || true)
    echo "$(grep -oE 'Used [0-9]+' log) $("$bin/nvdisasm" -c warps.cubin | grep -c USETMAXREG || true) $messages $named"
}
seen="none $(compile ''); .maxntid 384 $(compile '.maxntid 384'); option $(compile '.maxntid 384' -maxrregcount=168)"
seen="$seen; with .minnctapersm 1 $(compile '.maxntid 384 .minnctapersm 1'); with .maxnreg $(compile '.maxntid 384 .maxnreg 168')"
echo "ptxas 13.5.37, registers, instructions, messages, messages with a name: $seen"
expected="none Used 8 0 1 0; .maxntid 384 Used 8 0 1 0; option Used 8 0 1 0"
[ "$seen" = "$expected; with .minnctapersm 1 Used 168 2 0 0; with .maxnreg Used 168 2 0 0" ]
