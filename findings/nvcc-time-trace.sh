#!/usr/bin/env bash
# Question: what is in the JSON that nvcc -fdevice-time-trace writes for chrome://tracing?
# Guess:    the passes of NVVM for each architecture, and ptxas as one event.
# Seen:     nvidia-cuda-nvcc 13.5.37. The first event is an empty object, without a phase or a name. Each phase of the
#           build is a process of its own with one thread, and its name is only in a metadata event. ptxas has an event
#           for each kernel ("Optimizing compilation unit", the kernel's name in args): which kernel takes the time of
#           the build is in no other output of nvcc. Events are not in order of time.
# Meets:    whoever reads the file with a few lines of Python: event["ph"] raises KeyError at the first event. And
#           whoever looks for the kernel that compiles for minutes: it is there, but not in --time.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq nvidia-cuda-nvcc==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
export PATH="$(echo "$work"/venv/lib/python3*/site-packages/nvidia/cu13/bin):$PATH"
cat >kernels.cu <<'EOF'
extern "C" __global__ void first(float *p) { for (int i = 0; i < 100; i++) p[i] = p[i + 1] * 2.0f; }
extern "C" __global__ void second(float *p) { p[threadIdx.x] = 1.0f; }
EOF
nvcc -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -fdevice-time-trace trace.json -c \
    kernels.cu -o kernels.o
cat >read.py <<'EOF'
import json
from collections import Counter

events = json.load(open("trace.json"))["traceEvents"]
names = {event["pid"]: event["args"]["name"] for event in events if event.get("name") == "process_name"}
spans = [event for event in events if event.get("ph") == "X"]
phases = Counter(names[pid] for pid in {event["pid"] for event in spans})
kernels = Counter(event["args"]["name"] for event in spans if event["name"] == "Optimizing compilation unit")
times = [event["ts"] for event in spans]
print(f"first event {events[0]}, empty ones {events.count({})}, cicc {phases['cicc']}, ptxas {phases['ptxas']},", end=" ")
print(f"kernels {dict(sorted(kernels.items()))}, threads {({event['tid'] for event in spans})},", end=" ")
print(f"in order {times == sorted(times)}")
EOF
seen=$(python3 read.py)
echo "nvcc 13.5.37: $seen"
expected="first event {}, empty ones 1, cicc 2, ptxas 2, kernels {'first': 2, 'second': 2}, threads {0}, in order False"
[ "$seen" = "$expected" ]
