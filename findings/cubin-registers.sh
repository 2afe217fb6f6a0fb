#!/usr/bin/env bash
# Question: where does a cubin tell how many registers a kernel uses? Is it the upper byte of sh_info of its section
#           .text, as it has been, and is .nv.shared as large as the static shared memory?
# Guess:    yes for both, in CUDA 12.9 and in 13.5.
# Seen:     nvidia-cuda-nvcc-cu12 12.9.86, nvidia-cuda-nvcc 13.5.37 (ptxas), pyelftools 0.33. Up to sm_89, yes. From
#           sm_90 on, the byte is 0 with both compilers; only the attribute EIATTR_REGCOUNT in .nv.info has the number.
#           And .nv.shared has the reserved 1 KiB as well, which ptxas -v does not count.
# Meets:    whoever reads cubins with a library for ELF, as tools for older GPUs do: on Hopper and Blackwell every
#           kernel has 0 registers, and 1 KiB of shared memory too much.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvcc-cu12==12.9.86 pyelftools==0.33
packages=$(echo venv/lib/python3*/site-packages/nvidia)
cat >kernel.ptx <<'EOF'
.version 8.6
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 out) {
.reg .b64 %a<3>; .reg .b32 %r<4>; .shared .align 4 .b32 buffer[400];
ld.param.u64 %a1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %a2, %r1, 4; add.s64 %a1, %a1, %a2;
ld.global.u32 %r2, [%a1]; mov.u32 %r3, buffer; st.shared.u32 [%r3], %r2; bar.sync 0; ld.shared.u32 %r2, [%r3+4];
st.global.u32 [%a1], %r2; ret; }
EOF
cat >read.py <<'EOF'
import struct

from elftools.elf.elffile import ELFFile

elf = ELFFile(open("kernel.cubin", "rb"))
text, shared = elf.get_section_by_name(".text.kernel"), elf.get_section_by_name(".nv.shared.kernel")
data, position, registers = elf.get_section_by_name(".nv.info").data(), 0, None
while position < len(data):  # a format, an attribute, and a value or the size of one
    form, attribute, size = struct.unpack_from("<BBH", data, position)
    if (form, attribute) == (4, 0x2F):  # EIATTR_REGCOUNT: a symbol, and its registers
        registers = struct.unpack_from("<I", data, position + 8)[0]
    position += 4 + (size if form == 4 else 0)
upper = text["sh_info"] >> 24
print("registers" if upper == registers else upper, shared["sh_size"])
EOF
seen=""
expected=""
for architecture in 80 89 90 100; do
    for compiler in cuda_nvcc cu13; do
        log=$("$packages/$compiler/bin/ptxas" -v -arch="sm_$architecture" kernel.ptx -o kernel.cubin 2>&1)
        said=$(grep -oE "[0-9]+ bytes smem" <<<"$log")
        seen="$seen; sm_$architecture $compiler $(venv/bin/python read.py) ($said)"
        row="0 2624"
        [ "$architecture" -ge 90 ] || row="registers 1600"
        expected="$expected; sm_$architecture $compiler $row (1600 bytes smem)"
    done
done
echo "upper byte of sh_info, size of .nv.shared (ptxas -v)$seen"
[ "$seen" = "$expected" ]
