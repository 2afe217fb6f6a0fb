#!/usr/bin/env bash
# Time the programs without nsys, attached to it and inside captures, on one machine, and export the captures.
# Usage: capture.sh OUTDIR [NSYS]
# FRAMEWORKS, PROGRAMS, BACKTRACED (separated by commas) and SETS select what to run; LATEST is the second after which nothing starts.
# Needs: an NVIDIA GPU, nsys, nvcc (or SMALL, the compiled small.cu), python3 with PyTorch, JAX, CuPy; root
#
# A report contains the environment and all visible processes of the machine: each program runs with an environment of
# its own, in a PID namespace, in /srv/app.
set -u
out=$(realpath -m "$1"); nsys=${2:-nsys}; here=$(dirname "$(realpath "$0")"); app=/srv/app; mkdir -p "$out" $app/reports
cp "$here"/programs/small.* $app/; cd $app || exit 1
if [ -n "${SMALL:-}" ]; then cp "$SMALL" small; else nvcc -O2 -std=c++17 -arch=native -o small small.cu; fi
latest=${LATEST:-270}
clean="env -i HOME=$app USER=user LANG=C.UTF-8 PWD=$app OLDPWD=$app SHLVL=1 PATH=$PATH LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}"
clean="$clean XLA_PYTHON_CLIENT_PREALLOCATE=false"
alone="unshare -fp --mount-proc"
declare -A command=([cpp]="./small" [torch]="python3 small.py torch" [compiled]="python3 small.py compiled"
  [jax]="python3 small.py jax" [cupy]="python3 small.py cupy")
frameworks=${FRAMEWORKS:-cpp torch compiled jax cupy} programs=${PROGRAMS:-} sets=${SETS:-cuda samples backtraces}

time_alone() {
  for name in $frameworks; do
    [ $SECONDS -lt "$latest" ] || { echo "alone $1 $name: no time left"; continue; }
    $clean ${programs:+ONLY=$programs} $alone timeout 60 ${command[$name]} alone > "$out/alone.$1.$name.jsonl" 2> "$out/alone.$1.$name.log" || echo "alone $name: failed"
  done
  echo "alone $1 after $SECONDS s"
}

capture() {  # OPTIONS_NAME PROGRAMS FLAGS: of these programs, or of all if the list is empty
  local options=$1 only=${2:-$programs}; shift 2
  [[ " $sets " == *" $options "* ]] || return
  for name in $frameworks; do
    [ -z "$only" ] || [[ ",$only" == *",${name/torch/t}"* ]] || [[ ",$only" == *",$name"* ]] || continue
    [ $SECONDS -lt "$latest" ] || { echo "$options $name: no time left"; continue; }
    $clean ${only:+ONLY=$only} $alone timeout 75 "$nsys" profile "$@" \
      --capture-range=cudaProfilerApi --capture-range-end=repeat -f true -o "$app/reports/$options-$name" \
      ${command[$name]} nsys > "$out/$options.$name.log" 2>&1 || echo "$options $name: failed"
    grep '^{"program"' "$out/$options.$name.log" > "$out/$options.$name.jsonl"
    ls reports | grep -c "^$options-$name.*nsys-rep"
  done
  echo "$options after $SECONDS s"
}

{ nvidia-smi --query-gpu=name,driver_version --format=csv,noheader; "$nsys" --version; grep -m1 'model name' /proc/cpuinfo; } > "$out/machine.txt" 2>&1
# Compilers and caches: not timed.
for name in $frameworks; do $clean timeout 60 ${command[$name]} alone > "$out/warm.$name.log" 2>&1 & done; wait
echo "warm after $SECONDS s"
time_alone 1
capture cuda "" -t cuda,nvtx -s none --cpuctxsw=none
time_alone 2
capture samples "cpp_20_wait,cpp_memsets,cpp_ranges,cpp_graph,torch_decode,torch_adam,jax_calls,cupy_chain" \
  -t cuda,nvtx,osrt -s process-tree --cpuctxsw=process-tree --cuda-graph-trace=node
capture backtraces "${BACKTRACED:-cpp_20_wait,torch_decode,torch_adam}" -t cuda,nvtx,osrt -s process-tree --cudabacktrace=all
for report in reports/*.nsys-rep; do echo "$report"; done | xargs -P 12 -I{} sh -c \
  'n=$(basename {} .nsys-rep); timeout 60 '"$nsys"' export --type sqlite --force-overwrite true -o "$0/$n.sqlite" {} > "$0/$n.export.log" 2>&1 || echo "$n: export failed"' "$out"
echo "exported after $SECONDS s"
