#!/usr/bin/env bash
# Question: what does `cuobjdump -sass` do with a fat binary that holds one image of an old architecture?
# Guess:    none, it was known from an issue. One expects that it skips the image with a note, lists the others and
#           exits with 0.
# Seen:     nvidia-cuda-cuobjdump 13.5.37, nvidia-cuda-nvdisasm 13.5.37, images by nvidia-cuda-nvcc 13.5.37 (sm_90) and
#           nvidia-cuda-nvcc-cu12 12.9.86 (sm_52). It stops at the old image, with exit code 1; images after it are not
#           listed, images before it are. `-arch sm_90`, `-lelf` and `-res-usage` read the same file to its end.
# Meets:    whoever lists a library that was built for many architectures: the listing depends on the order of the
#           images.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq nvidia-cuda-nvcc==13.5.37 nvidia-cuda-cuobjdump==13.5.37 nvidia-cuda-nvdisasm==13.5.37 nvidia-cuda-nvcc-cu12==12.9.86
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
ptxas -arch=sm_90 one.ptx -o new.cubin
venv/lib/python3*/site-packages/nvidia/cuda_nvcc/bin/ptxas -arch=sm_52 one.ptx -o old.cubin
old=--image3=kind=elf,sm=52,file=old.cubin
new=--image3=kind=elf,sm=90,file=new.cubin
fatbinary -64 --create=old_first.fatbin $old $new
fatbinary -64 --create=new_first.fatbin $new $old
# Prints how many kernels are listed, and the exit code.
listing() {
    local code=0
    cuobjdump "$@" >out 2>err || code=$?
    echo "$(grep -cE 'Function :|Function one|ELF file' out || true)/$code"
}
seen="old first $(listing -sass old_first.fatbin), new first $(listing -sass new_first.fatbin)"
seen="$seen, -arch sm_90 $(listing -sass -arch sm_90 old_first.fatbin)"
seen="$seen, -lelf $(listing -lelf old_first.fatbin), -res-usage $(listing -res-usage old_first.fatbin)"
echo "cuobjdump 13.5.37, rows/exit code: $seen"
[ "$seen" = "old first 0/1, new first 1/1, -arch sm_90 1/0, -lelf 2/0, -res-usage 2/0" ]
