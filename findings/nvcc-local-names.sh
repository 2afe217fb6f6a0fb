#!/usr/bin/env bash
# Question: what does the linker's name of a kernel in an unnamed namespace depend on?
# Guess:    on a hash of the file: the same file in another folder keeps the name, and so does a file with another
#           function more. Static kernels have no hash. NVRTC: equal for equal names of programs (right).
# Seen:     nvidia-cuda-nvcc 13.5.37 (nvcc), nvidia-cuda-nvrtc 13.5.37. nvcc: on the folder, not on the content: a hash
#           of the absolute path stands in the name, and two folders give two names. And on the first function of the
#           file that others can see: a new kernel at the top renames all kernels of the unnamed namespace, one at the
#           end does not. NVRTC: zeros for the folder, the program's name, and the same first function. With -rdc=true
#           such kernels and static ones get a prefix, __nv_static_, with which a name is no mangled name: c++filt
#           returns it as it is.
# Meets:    whoever compares builds or profiles by the linker's names: the build server and the own checkout have other
#           names for one kernel, and names with a prefix stay unreadable.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq nvidia-cuda-nvcc==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6 \
    nvidia-cuda-nvrtc==13.5.37 cuda-bindings==13.5.0
bin=$(echo "$work"/venv/lib/python3*/site-packages/nvidia/cu13/bin)
export PATH="$bin:$PATH"

source='namespace { __global__ void hidden(float* p) { *p = 1; } }
static __global__ void internal(float* p) { *p = 2; }
__global__ void visible(float* p) { hidden<<<1, 1>>>(p); internal<<<1, 1>>>(p); }'
# Compiles a file for sm_90: its folder, its text, options. Prints the names of its kernels.
names() {
    mkdir -p "$1"
    echo "$2" >"$1/k.cu"
    nvcc -arch=sm_90 -ptx -rdc=true "${@:3}" "$1/k.cu" -o out.ptx
    grep -oE "\.entry [^(]+" out.ptx | sed 's/.entry //' | sort
}
hidden() {
    names "$@" | grep hidden | sed 's/.*\(_GLOBAL__N__\)/\1/'
}
one=$(hidden one "$source")
again=$(hidden one "$source // more")
two=$(hidden two "$source")
after=$(hidden one "$source"$'\n__global__ void other() {}')
before=$(hidden one $'__global__ void other() {}\n'"$source")
prefix=$(names one "$source" | grep internal)
nvrtc=$(venv/bin/python - <<'EOF'
import re

from cuda.bindings import nvrtc

source = b"namespace { __global__ void hidden(float* p) { *p = 1; } } __global__ void visible(float* p) { *p = 3; }"
_, program = nvrtc.nvrtcCreateProgram(source, b"k.cu", 0, [], [])
nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=sm_90"])
_, size = nvrtc.nvrtcGetPTXSize(program)
ptx = b" " * size
nvrtc.nvrtcGetPTX(program, ptx)
print(re.search(rb"\.entry (\S*hidden\w*)", ptx)[1].decode())
EOF
)
same() { [ "$1" = "$2" ] && echo same || echo other; }
seen="content $(same "$one" "$again"), folder $(same "$one" "$two"), kernel at the end $(same "$one" "$after")"
seen="$seen, at the top $(same "$one" "$before"); c++filt: $(same "$prefix" "$(c++filt "$prefix")")"
echo "nvcc 13.5.37: $seen; NVRTC: $nvrtc; prefix: ${prefix:0:12}"
[ "$seen" = "content same, folder other, kernel at the end same, at the top other; c++filt: same" ]
[ "$nvrtc" = "_ZN36_GLOBAL__N__00000000_4_k_cu_5916767c6hiddenEPf" ]
[ "${prefix:0:12}" = "__nv_static_" ]
