#!/usr/bin/env bash
# Profile the decode step unfused and with each variant of fused chains, eager and in a CUDA graph.
# Usage: trial.sh OUTDIR [NSYS]     needs: an NVIDIA GPU, nsys, python3 with PyTorch and Triton; a few minutes
#
# Then: python3 benchmarks/fusion/compare.py OUTDIR     compare predicted and measured savings
# A report contains the environment and all visible processes, so use env -i and a PID namespace.
set -u
out=$(realpath -m "$1"); nsys=${2:-nsys}; here=$(dirname "$(realpath "$0")"); mkdir -p "$out"
app=$(mktemp -d); cp "$here/decode.py" "$here/kernels.py" "$app"; cd "$app" || exit 1
clean="env -i HOME=$app USER=user LANG=C.UTF-8 PATH=$PATH LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}"
alone=""; unshare -fp --mount-proc true 2> /dev/null && alone="unshare -fp --mount-proc"

profile() {  # NAME VARIANT MODE
  $clean $alone timeout 90 "$nsys" profile -s none --cpuctxsw=none -t cuda,nvtx --cuda-graph-trace=node \
    --capture-range=cudaProfilerApi --capture-range-end=stop -f true -o "$app/$1" \
    python3 decode.py --variant "$2" --mode "$3" > "$out/$1.log" 2>&1 || echo "$1: profile failed"
  $clean timeout 60 "$nsys" export --type sqlite --force-overwrite true -o "$out/$1.sqlite" "$app/$1.nsys-rep" \
    >> "$out/$1.log" 2>&1 || echo "$1: export failed"
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader > "$out/machine.txt" 2>&1
"$nsys" --version >> "$out/machine.txt" 2>&1
$clean timeout 150 python3 decode.py --time "$out/plain.json" > "$out/plain.log" 2>&1 || echo "plain: failed"
for mode in eager graph; do
  for variant in base norm rope silu_mul residual_norm all; do profile "${mode}_$variant" "$variant" "$mode"; done
done
profile eager_base_again base eager   # shows the difference between two captures of one program
tail -n 3 "$out"/*.log
