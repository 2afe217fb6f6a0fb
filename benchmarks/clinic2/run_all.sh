#!/usr/bin/env bash
# run_all.sh OUT DEADLINE [NAME ...]: compile, time, capture, pack; needs root, a GPU, nvcc, nsys of Nsight Compute;
# lib/ (not kept here) holds libdw.so.1, libelf.so.1, liblzma.so.5 and libbz2.so.1.0 for nsys, where the system lacks them
set -u
out=$1; deadline=$2; shift 2; cd "$(dirname "$(realpath "$0")")"
mkdir -p /srv/app /srv/lib /srv/curand; cp lib/* /srv/lib/ 2>/dev/null; cp programs/* /srv/app/
header=$(find /usr/local /opt /usr/include -name curand_kernel.h 2>/dev/null | head -1); echo "curand: $header"
[ -n "$header" ] && cp "$(dirname "$header")"/curand* /srv/curand/
for source in programs/*.cu; do
  name=$(basename "$source" .cu)
  ( timeout 60 nvcc -O2 -std=c++17 -arch=sm_90 -I/srv/curand -o /srv/app/$name $source > /tmp/$name.log 2>&1 || { echo "nvcc $name failed"; tail -5 /tmp/$name.log; } ) &
done
wait
python3 run_all.py "$out" /opt/nvidia/nsight-compute/2025.3.1/host/target-linux-x64/nsys "$deadline" "$@"
