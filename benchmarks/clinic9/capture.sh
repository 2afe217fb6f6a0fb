#!/usr/bin/env bash
# Times of both variants without a profiler, then a trace of the ailing one: capture.sh OUT [NAME ...]
#
# Run it on a machine with one or two H200. It writes OUT/results.txt, OUT/NAME.sqlite (two processes: OUT/NAME_rank0.sqlite and
# OUT/NAME_rank1.sqlite), and OUT/logs. Results of the first steps are compared, too. A pair that fails is reported, and the next
# one runs. Pairs for two GPUs (parish, strait) are skipped where there is one.
#   NSYS=path     nsys, if it is not on the PATH; NSYS=none for times alone
#   PYTHON=path   a Python with PyTorch, Triton, JAX and CuPy (python3)
#   BUILD=only    only compile, into OUT/bin; programs that are there already are not compiled again
set -u
out=$(mkdir -p "$1" && cd "$1" && pwd)
shift
here=$(cd "$(dirname "$0")" && pwd)/programs
python=${PYTHON:-python3}
nsys=${NSYS:-nsys}
mkdir -p "$out/bin" "$out/logs" "$out/first"
export PYTHONPATH=$here PYTHONDONTWRITEBYTECODE=1
export NCCL_NVLS_ENABLE=0  # no NVLink multicast
# Kernels of a JAX program are launched one by one, because nsys 2025.3 lost its graphs before
export XLA_FLAGS="${XLA_FLAGS:-} --xla_gpu_enable_command_buffer="

declare -A steps=(
    [lantern]=4 [orchard]=2 [canopy]=4 [parable]=4 [quarry]=3 [almanac]=4 [lagoon]=3 [sundial]=6 [prism]=4
    [tremor]=3 [vineyard]=3 [aurora]=4 [kiln]=4 [choir]=2 [parish]=4 [strait]=3
)
declare -A libraries=([aurora]=curand [choir]=cublas)
names=("$@")
[ ${#names[@]} -gt 0 ] || mapfile -t names < <(printf '%s\n' "${!steps[@]}" | sort)
gpus=$(nvidia-smi -L 2>/dev/null | wc -l)

# Compile a C++ program. Headers and libraries that the toolkit lacks may lie among the packages of Python (nvidia/cu13).
build() {
    [ -x "$out/bin/$1" ] && return
    local library=${libraries[$1]:-} flags=(-O2 -std=c++17 -arch=sm_90)
    if [ -n "$library" ]; then
        local header place file=""
        header=$([ "$library" = cublas ] && echo cublas_v2.h || echo "$library.h")
        place=$("$python" -c 'import site, sys; print("\n".join([*site.getsitepackages(), *sys.path]))' 2>/dev/null | while read -r folder; do
            for found in "$folder"/nvidia/cu13 "$folder/nvidia/$library"; do
                [ -n "$folder" ] && [ -f "$found/include/$header" ] && echo "$found" && break 2
            done
        done)
        if ! echo "#include <$header>" | nvcc -E -x cu - >/dev/null 2>&1 && [ -n "$place" ]; then flags+=("-I$place/include"); fi
        [ -n "$place" ] && file=$(find "$place/lib" -name "lib$library.so*" 2>/dev/null | sort | head -1)
        if echo 'int main() {}' | nvcc -x cu -o "$out/bin/.link" - "-l$library" >/dev/null 2>&1; then
            flags+=("-l$library")
        elif [ -n "$file" ]; then
            flags+=("-L$(dirname "$file")" "-l:$(basename "$file")" -Xlinker "-rpath=$(dirname "$file")")
        else
            flags+=("-l$library")
        fi
        rm -f "$out/bin/.link"
    fi
    nvcc "$here/$1.cu" -o "$out/bin/$1" "${flags[@]}" >"$out/logs/$1.build" 2>&1 || { echo "$1: does not compile" && return 1; }
}

# Run a variant, with what is in `before` (nsys) in front; with two processes, the second in the background.
start() {
    local name=$1 program rank other status
    shift
    if [ -f "$here/$name.cu" ]; then program=("$out/bin/$name"); else program=("$python" "$here/$name.py"); fi
    if [ "$name" != parish ]; then
        timeout 180 "${before[@]/RANK/}" "${program[@]}" "$@"
        return
    fi
    export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 10000))
    rank=1
    RANK=$rank timeout 180 "${before[@]/RANK/_rank1}" "${program[@]}" "$@" >"$out/logs/$name.rank1" 2>&1 &
    other=$!
    RANK=0 timeout 180 "${before[@]/RANK/_rank0}" "${program[@]}" "$@"
    status=$?
    wait "$other" || status=1
    return $status
}

for name in "${names[@]}"; do
    if [ -f "$here/$name.cu" ]; then build "$name" || continue; fi
    [ "${BUILD:-}" = only ] && continue
    if [[ $name == parish || $name == strait ]] && [ "$gpus" -lt 2 ]; then
        echo "$name: two GPUs are needed"
        continue
    fi
    before=(env)
    for variant in ailing cured; do
        time=$(start "$name" "$variant" --save "$out/first/$name.$variant" 2>"$out/logs/$name.$variant" | tail -1)
        echo "$name $variant ${time:-failed: $(tail -1 "$out/logs/$name.$variant")}" | tee -a "$out/results.txt"
    done
    "$python" - "$name" "$out/first/$name.ailing" "$out/first/$name.cured" <<'PYTHON' 2>&1 | tail -1 | tee -a "$out/results.txt"
import sys

import numpy as np

a, b = (np.fromfile(path, np.float32) for path in sys.argv[2:])
print(sys.argv[1], "difference", f"{np.abs(a - b).max() / max(np.abs(b).max(), 1e-30):.1e}", "of", a.size, "numbers")
PYTHON
    [ "$nsys" = none ] && continue
    before=("$nsys" profile -t "cuda,nvtx" -s none "--cpuctxsw=none" "--capture-range=cudaProfilerApi" "--capture-range-end=stop"
        --force-overwrite true -o "$out/${name}RANK")
    start "$name" ailing --profile "${steps[$name]}" >"$out/logs/$name.nsys" 2>&1 || echo "$name: status $? of the profiled run"
    for report in "$out/$name".nsys-rep "$out/${name}"_rank[01].nsys-rep; do
        [ -f "$report" ] || continue
        "$nsys" export --type sqlite --force-overwrite true -o "${report%.nsys-rep}.sqlite" "$report" >>"$out/logs/$name.nsys" 2>&1 ||
            echo "$name: no export of $report"
    done
done
