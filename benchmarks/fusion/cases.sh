#!/usr/bin/env bash
# Profile the unfused programs of cases.py, and time them unfused and fused without the profiler.
# Usage: cases.sh OUTDIR [NSYS]     needs: an NVIDIA GPU, nsys, python3 with PyTorch and Triton; about five minutes
#
# Then: python3 benchmarks/fusion/bounds.py OUTDIR     compare predicted and measured savings
# A report contains the environment and all visible processes, so use env -i and a PID namespace.
set -u
out=$(realpath -m "$1"); nsys=${2:-nsys}; here=$(dirname "$(realpath "$0")"); mkdir -p "$out"
app=$(mktemp -d); cp "$here/cases.py" "$here/kernels.py" "$app"; cd "$app" || exit 1
clean="env -i HOME=$app USER=user LANG=C.UTF-8 PWD=$app OLDPWD=$app SHLVL=1 PATH=$PATH LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}"
alone=""; unshare -fp --mount-proc true 2> /dev/null && alone="unshare -fp --mount-proc"
latest=${LATEST:-420}  # seconds after which no capture starts

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader > "$out/machine.txt" 2>&1
"$nsys" --version >> "$out/machine.txt" 2>&1
$clean timeout 240 python3 cases.py --time "$out/times.json" > "$out/times.log" 2>&1 || echo "times: failed"
echo "timed after $SECONDS s"
for name in $($clean python3 cases.py --names); do
  [ "$SECONDS" -lt "$latest" ] || { echo "$name: no time left"; continue; }
  $clean $alone timeout 60 "$nsys" profile -s none --cpuctxsw=none -t cuda,nvtx \
    --capture-range=cudaProfilerApi --capture-range-end=stop -f true -o "$app/$name" \
    python3 cases.py --capture "$name" > "$out/$name.log" 2>&1 || echo "$name: profile failed"
done
echo "captured after $SECONDS s"
for report in "$app"/*.nsys-rep; do
  name=$(basename "$report" .nsys-rep)
  $clean timeout 60 "$nsys" export --type sqlite --force-overwrite true -o "$out/$name.sqlite" "$report" \
    >> "$out/$name.log" 2>&1 || echo "$name: export failed"
done
echo "exported after $SECONDS s"
tail -n 2 "$out"/*.log
