#!/usr/bin/env bash
# Time the runs of train.py without a profiler, then capture each with an nsys of its own for each rank.
# Usage: capture.sh OUTDIR [NSYS] [NAME ...]     needs: several NVIDIA GPUs, nsys, python3 with PyTorch; root
#
# As for benchmarks/clinic: a clean environment, because a report carries it; a PID namespace, because a report lists the
# processes that it sees; NVLink multicast off, because a program that dies while using it can leave the GPUs out of order.
set -u
out=$(realpath -m "$1"); nsys=${2:-nsys}; shift; [ $# -gt 0 ] && shift
here=$(dirname "$(realpath "$0")"); world=$(nvidia-smi -L | wc -l)
mkdir -p "$out" /srv/app/reports; cp "$here/train.py" /srv/app/
kinds="ddp fsdp fsdp_small tensor pipeline experts"
names=${*:-$(for kind in $kinds; do echo $kind\_{healthy,late,larger}; done) pipeline_even sizes}
cat > /srv/app/run.sh <<'E2'
mkdir -p /tmp/nvidia; mount -t tmpfs none /tmp/nvidia
meeting=$(mktemp -u /tmp/meeting.XXXXXX)
for rank in $(seq 0 $((WORLD_SIZE - 1))); do
  if [ "$1" = times ]; then RANK=$rank python3 train.py "$meeting" times &
  else
    RANK=$rank "$NSYS" profile -t cuda,nvtx -s none --cpuctxsw=none --capture-range=cudaProfilerApi --capture-range-end=stop \
      -f true -o "/srv/app/reports/$1_rank$rank" python3 train.py "$meeting" "$1" --profile &
  fi
done
wait
E2
run() {
  timeout 100 env -i HOME=/tmp USER=user LANG=C.UTF-8 PATH="$PATH" LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}" NSYS="$nsys" \
    WORLD_SIZE="$world" NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 NVSHMEM_DISABLE_NVLS=1 \
    unshare -fpm --mount-proc --kill-child env -C /srv/app bash run.sh "$1" > "/srv/app/reports/$1.log" 2>&1
  grep -h '^{"name"' "/srv/app/reports/$1.log" >> "$out/times.jsonl"
  [ "$(grep -c '^{"name"' "/srv/app/reports/$1.log")" -ge "$world" ] || { echo "$1 failed"; tail -30 "/srv/app/reports/$1.log"; }
  echo "$1 done after $SECONDS s"
}
[ -n "${NO_TIMES:-}" ] || run times
for name in $names; do run "$name"; done
cd /srv/app/reports
ls *.nsys-rep | xargs -P "$(nproc)" -I{} "$nsys" export --type sqlite --include-blobs=true -f true {} > /dev/null 2>&1
for kind in ddp fsdp tensor pipeline experts sizes; do  # at most eight files
  ls $kind*.sqlite > /dev/null 2>&1 && tar -cJf "$out/$kind.tar.xz" $kind*.sqlite &
done
wait
echo "packed after $SECONDS s"
