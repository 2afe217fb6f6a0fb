#!/usr/bin/env bash
# Question: which files does the line table name that NVRTC writes with -lineinfo, for a program from a text and a header
#           from a text?
# Guess:    the names that nvrtcCreateProgram got, as they are.
# Seen:     nvidia-cuda-nvrtc 13.5.37, nvidia-cuda-nvdisasm 13.5.37. The working directory of the process stands before
#           both names, also before default_program, the name of a program without one: files that have never existed.
#           So the cubin of one program differs from folder to folder. Without -lineinfo it is the same.
# Meets:    whoever caches cubins by their bytes, or wants equal ones on all ranks of a job that start in folders of
#           their own; and tools that look for the source: headers of a library seem to lie in the user's folder.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq nvidia-cuda-nvrtc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
bin=$(echo "$work"/venv/lib/python3*/site-packages/nvidia/cu13/bin)
cat >compile.py <<'EOF'
import ctypes
import sys
from pathlib import Path

import nvidia.cu13

nvrtc = ctypes.CDLL(str(next(Path(next(iter(nvidia.cu13.__path__))).glob("lib/libnvrtc.so.13*"))))
name, options, output = sys.argv[1].encode(), [option.encode() for option in sys.argv[3:]], sys.argv[2]
text = b'#include "part.h"\nextern "C" __global__ void kernel(float *p) {\n  *p = half_of(*p);\n}\n'
header = b"__device__ inline float half_of(float x) {\n  return x * 0.5f;\n}\n"
program, size = ctypes.c_void_p(), ctypes.c_size_t()
texts, names = (ctypes.c_char_p * 1)(header), (ctypes.c_char_p * 1)(b"part.h")
assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, name, 1, texts, names) == 0
assert nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options)) == 0
assert nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)) == 0
cubin = ctypes.create_string_buffer(size.value)
assert nvrtc.nvrtcGetCUBIN(program, cubin) == 0
Path(output).write_bytes(cubin.raw)
EOF
mkdir one two
for folder in one two; do
    (cd $folder && ../venv/bin/python ../compile.py given/a.cu ../$folder.cubin -arch=sm_90 -lineinfo)
    (cd $folder && ../venv/bin/python ../compile.py given/a.cu ../$folder.plain.cubin -arch=sm_90)
done
(cd one && ../venv/bin/python ../compile.py "" ../unnamed.cubin -arch=sm_90 -lineinfo)
files() {
    "$bin/nvdisasm" -g -c "$1" | grep -oE 'File "[^"]+"' | sort -u | sed "s#$work#FOLDER#; s/File //" | tr '\n' ' '
}
compare() {
    cmp -s "$1" "$2" && echo equal || echo different
}
seen="$(files one.cubin)$(files unnamed.cubin)lines $(compare one.cubin two.cubin)"
seen="$seen, without $(compare one.plain.cubin two.plain.cubin)"
echo "NVRTC 13.5.37: $seen"
expected='"FOLDER/one/given/a.cu" "FOLDER/one/part.h" "FOLDER/one/default_program" "FOLDER/one/part.h"'
[ "$seen" = "$expected lines different, without equal" ]
