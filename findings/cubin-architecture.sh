#!/usr/bin/env bash
# Question: where does the ELF header of a cubin tell its architecture?
# Guess:    in the lowest byte of e_flags (90 for sm_90), in CUDA 12 and 13.
# Seen:     nvidia-cuda-nvcc-cu12 12.9.86 and nvidia-cuda-nvcc 13.5.37 (ptxas), nvidia-cuda-nvdisasm 13.5.37. CUDA 12.9:
#           as guessed for sm_90 (0x5a055a) and sm_90a (0x5a0d5a), ELF ABI version 7. But for sm_100 CUDA 12.9, too,
#           writes the newer form: ABI version 8, the architecture in the second byte, the lowest is 2. CUDA 13.5 writes
#           it for all: sm_90 and sm_90a are both 0x6005a04, sm_100, sm_100a and sm_100f all 0x6006402. nvdisasm still
#           knows sm_90a and sm_100a, and names sm_100f sm_100.
# Meets:    whoever matches cubins (of a compiler's cache, or extracted from a library) with GPUs by the header: CUDA 13
#           makes them all sm_2 or sm_4, and code for sm_100a, which only that GPU runs, looks like that for sm_100.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 nvidia-cuda-nvcc-cu12==12.9.86
packages=$(echo venv/lib/python3*/site-packages/nvidia)

# Compiles an empty kernel: the folder of ptxas, the architecture. Prints e_flags and the ABI version.
header() {
    printf '.version 8.8\n.target sm_%s\n.address_size 64\n.visible .entry kernel() { ret; }\n' "$2" >kernel.ptx
    "$1/ptxas" -arch="sm_$2" kernel.ptx -o kernel.cubin
    python3 -c 'import sys; b = open("kernel.cubin", "rb").read(64); print(hex(int.from_bytes(b[48:52], "little")), b[8])'
}
seen=""
for architecture in 90 90a 100 100a 100f; do
    old=$(header "$packages/cuda_nvcc/bin" $architecture)
    new=$(header "$packages/cu13/bin" $architecture)
    target=$("$packages/cu13/bin/nvdisasm" kernel.cubin | grep -oE "\.target\s+sm_\w+" | grep -oE "sm_\w+")
    seen="$seen; sm_$architecture: 12.9 $old, 13.5 $new, nvdisasm $target"
done
echo "cubin e_flags and ABI version${seen}"
expected="; sm_90: 12.9 0x5a055a 7, 13.5 0x6005a04 8, nvdisasm sm_90"
expected="$expected; sm_90a: 12.9 0x5a0d5a 7, 13.5 0x6005a04 8, nvdisasm sm_90a"
expected="$expected; sm_100: 12.9 0x6006402 8, 13.5 0x6006402 8, nvdisasm sm_100"
expected="$expected; sm_100a: 12.9 0x600640a 8, 13.5 0x6006402 8, nvdisasm sm_100a"
expected="$expected; sm_100f: 12.9 0x6006402 8, 13.5 0x6006402 8, nvdisasm sm_100"
[ "$seen" = "$expected" ]
