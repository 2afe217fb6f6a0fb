#!/usr/bin/env bash
# Question: do the metrics for bytes of DRAM and for tensor cores have the same names on all GPUs?
# Guess:    bytes of DRAM on all but GPUs that share the memory of the CPU; tensor cores by operation up to Hopper.
# Seen:     the lists of metrics in nvidia-cuda-cupti 13.5.25, which need no GPU. dram__bytes is on all with memory of
#           their own, but dram__bytes_read and dram__bytes_write are not on GB202 to GB207 and GR100: there they are
#           dram__bytes_op_read and dram__bytes_op_write. GB100 has the old names. Tensor cores as guessed: from Blackwell
#           on sm__pipe_tensor_subpipe_hmma_cycles_active stands for sm__pipe_tensor_op_hmma_cycles_active. GA10B, GB10B
#           and others that share the memory of the CPU have no dram__ at all.
# Meets:    whoever asks ncu for dram__bytes_read.sum, or reads it from a report: on one Blackwell GPU it is there, on
#           another it is missing, and the sum over reads and writes is 0 or NULL.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq nvidia-cuda-cupti==13.5.25
cat >names.py <<'EOF'
import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
SIZE, TEXT, POINTER = ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p


def call(name, /, **fields):
    """Call a function with its structure; a field is a type, or a type and a value. Return the structure."""
    types = [(field, spec[0] if isinstance(spec, tuple) else spec) for field, spec in fields.items()]
    structure = type(name, (ctypes.Structure,), {"_fields_": [("size", SIZE), ("private", POINTER), *types]})
    values = {field: spec[1] for field, spec in fields.items() if isinstance(spec, tuple)}
    last_name, last_type = (types or [("private", POINTER)])[-1]
    size = getattr(structure, last_name).offset + ctypes.sizeof(last_type)
    parameters = structure(size=size, **values)
    status = getattr(library, f"NVPW_{name}")(ctypes.byref(parameters))
    assert status == 0, (name, status)
    return parameters


def list_metrics(chip):
    """Return the names of all counters, ratios and throughputs of a chip."""
    scratch = call(
        "CUDA_MetricsEvaluator_CalculateScratchBufferSize", chip=(TEXT, chip), availability=POINTER, bytes=SIZE
    ).bytes
    buffer = (ctypes.c_uint8 * scratch)()
    evaluator = call(
        "CUDA_MetricsEvaluator_Initialize", scratch=(POINTER, ctypes.addressof(buffer)), bytes=(SIZE, scratch),
        chip=(TEXT, chip), availability=POINTER, image=POINTER, image_bytes=SIZE, evaluator=POINTER,
    ).evaluator  # fmt: skip
    names = set()
    for kind in range(3):
        found = call(
            "MetricsEvaluator_GetMetricNames", evaluator=(POINTER, evaluator), kind=(ctypes.c_uint8, kind),
            names=POINTER, begins=ctypes.POINTER(SIZE), count=SIZE,
        )  # fmt: skip
        names |= {ctypes.string_at(found.names + found.begins[number]).decode() for number in range(found.count)}
    call("MetricsEvaluator_Destroy", evaluator=(POINTER, evaluator))
    return names


call("InitializeHost")
chips = call("GetSupportedChipNames", names=ctypes.POINTER(TEXT), count=SIZE)
metrics = {chips.names[number].decode(): list_metrics(chips.names[number]) for number in range(chips.count)}
asked = (
    "dram__bytes", "dram__bytes_read", "dram__bytes_op_read", "sm__pipe_tensor_op_hmma_cycles_active",
    "sm__pipe_tensor_subpipe_hmma_cycles_active",
)  # fmt: skip
shown = ("TU102", "GA100", "AD102", "GH100", "GB100", "GB202", "GB10B", "GR100")
seen = {chip: "".join("+" if name in metrics[chip] else "-" for name in asked) for chip in shown}
count = {name: sum(name in names for names in metrics.values()) for name in asked[:3]}
print(f"CUPTI 13.5.25, {len(metrics)} chips; {', '.join(asked)}:", seen, count)
assert seen == {
    "TU102": "++-+-",
    "GA100": "++-+-",
    "AD102": "++-+-",
    "GH100": "++-+-",
    "GB100": "++--+",
    "GB202": "+-+-+",
    "GB10B": "----+",
    "GR100": "+-+-+",
}
assert (len(metrics), *count.values()) == (32, 27, 21, 6)
EOF
venv/bin/python names.py "$(echo "$work"/venv/lib/python3*/site-packages/nvidia/cu13/lib/libnvperf_host.so)"
