#!/usr/bin/env bash
# Time the programs without a profiler, then capture them with nsys.
# Usage: capture.sh OUTDIR [NSYS] [option of capture.py ...] [NAME ...]
# Needs: an NVIDIA GPU, nsys, nvcc, python3 with PyTorch, JAX, CuPy; root (for the PID namespaces)
#
# A report contains the environment and all visible processes of the machine: each program runs with an environment of
# its own, in a PID namespace, in /srv/app. An nsys that comes inside Nsight Compute needs libdw.so.1 on LD_LIBRARY_PATH.
set -u
out=$(realpath -m "$1"); nsys=${2:-nsys}; shift; [ $# -gt 0 ] && shift
here=$(dirname "$(realpath "$0")"); mkdir -p "$out" /srv/app/reports
cp "$here"/programs/* /srv/app/
for source in "$here"/programs/*.cu; do
  name=$(basename "$source" .cu)
  nvcc -O2 -std=c++17 -arch=native -o "/srv/app/$name" "$source" > "$out/$name.nvcc.log" 2>&1 &
done
wait
cat "$out"/*.nvcc.log; rm "$out"/*.nvcc.log
python3 "$here/capture.py" run "$out" --nsys "$nsys" "$@"
