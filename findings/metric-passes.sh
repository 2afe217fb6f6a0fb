#!/usr/bin/env bash
# Question: in how many passes does a kernel run for one of ncu's metrics?
# Guess:    1 for bytes of DRAM with instructions; 3 for sm__throughput and 4 for gpu__compute_memory_throughput on GH100.
# Seen:     nvidia-cuda-cupti 13.5.25, which plans the passes without a GPU. 1 for three counters of DRAM and
#           instructions, 2 for ten counters of SM, L1, L2 and DRAM. But 8 for sm__throughput on GH100, 5 on GA100 and
#           6 on AD102: it is the largest of two dozen counters. gpu__compute_memory_throughput takes 5 on GH100 and 8
#           on GA100. Both together do not take the sum of it, but 9 on GH100 and 8 on GA100.
# Meets:    whoever profiles with few metrics to save time: one percentage costs four times what ten counters cost, and
#           not the same on each GPU.
set -euo pipefail
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq nvidia-cuda-cupti==13.5.25
cat >passes.py <<'EOF'
import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
SIZE, TEXT, POINTER = ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p
EVALUATED_BYTES = 12  # a metric's index, type, roll-up and part


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


class Request(ctypes.Structure):
    _fields_ = [
        ("size", SIZE), ("private", POINTER), ("name", TEXT), ("is_isolated", ctypes.c_uint8), ("keeps", ctypes.c_uint8)
    ]  # fmt: skip


def count_passes(chip, metrics):
    """Return in how many passes a kernel runs for all of these metrics."""
    scratch = call(
        "CUDA_MetricsEvaluator_CalculateScratchBufferSize", chip=(TEXT, chip), availability=POINTER, bytes=SIZE
    ).bytes
    buffer = (ctypes.c_uint8 * scratch)()
    evaluator = call(
        "CUDA_MetricsEvaluator_Initialize", scratch=(POINTER, ctypes.addressof(buffer)), bytes=(SIZE, scratch),
        chip=(TEXT, chip), availability=POINTER, image=POINTER, image_bytes=SIZE, evaluator=POINTER,
    ).evaluator  # fmt: skip
    config = call(
        "CUDA_RawMetricsConfig_Create_V2", kind=(ctypes.c_int, 1), chip=(TEXT, chip), availability=POINTER, config=POINTER
    ).config
    owner = (POINTER, config)
    call("RawMetricsConfig_BeginPassGroup", config=owner, most=SIZE)
    for metric in metrics:
        evaluated = (ctypes.c_uint64 * 2)()
        spec = (POINTER, ctypes.addressof(evaluated))
        call(
            "MetricsEvaluator_ConvertMetricNameToMetricEvalRequest", evaluator=(POINTER, evaluator),
            name=(TEXT, metric.encode()), request=spec, bytes=(SIZE, EVALUATED_BYTES),
        )  # fmt: skip
        fields = {
            "evaluator": (POINTER, evaluator), "requests": spec, "count": (SIZE, 1), "bytes": (SIZE, EVALUATED_BYTES),
            "stride": (SIZE, 16), "names": POINTER, "name_count": SIZE, "optional": POINTER,
            "optional_count": SIZE,
        }  # fmt: skip
        count = call("MetricsEvaluator_GetMetricRawDependencies", **fields).name_count
        names = (TEXT * count)()
        fields["names"], fields["name_count"] = (POINTER, ctypes.addressof(names)), (SIZE, count)
        call("MetricsEvaluator_GetMetricRawDependencies", **fields)
        for name in names:
            request = Request(Request.keeps.offset + 1, None, name, 1, 1)
            call(
                "RawMetricsConfig_AddMetrics", config=owner, requests=(POINTER, ctypes.addressof(request)),
                count=(SIZE, 1),
            )  # fmt: skip
    call("RawMetricsConfig_EndPassGroup", config=owner)
    call("RawMetricsConfig_GenerateConfigImage", config=owner, merges=(ctypes.c_uint8, 0))
    passes = call("RawMetricsConfig_GetNumPasses_V2", config=owner, count=SIZE).count
    call("RawMetricsConfig_Destroy", config=owner)
    call("MetricsEvaluator_Destroy", evaluator=(POINTER, evaluator))
    return passes


call("InitializeHost")
compute = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
memory = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
counters = (
    "dram__bytes.sum", "dram__sectors.sum", "sm__inst_executed.sum", "sm__cycles_active.avg", "sm__cycles_elapsed.max",
    "smsp__inst_executed.sum", "lts__t_sectors.sum", "lts__t_sectors_lookup_hit.sum", "l1tex__t_sectors.sum",
    "gpu__time_duration.sum",
)  # fmt: skip
requests = (counters[:3], counters, [compute], [memory], [compute, memory])
seen = {
    chip: [count_passes(chip.encode(), metrics) for metrics in requests]
    for chip in ("TU102", "GA100", "AD102", "GH100", "GB100", "GB202")
}
print("CUPTI 13.5.25, passes for 3 counters, 10 counters, sm__throughput, gpu__compute_memory_throughput, both:", seen)
assert seen == {
    "TU102": [1, 2, 5, 7, 7],
    "GA100": [1, 2, 5, 8, 8],
    "AD102": [1, 2, 6, 5, 8],
    "GH100": [1, 2, 8, 5, 9],
    "GB100": [1, 2, 8, 5, 9],
    "GB202": [1, 2, 7, 5, 9],
}
EOF
venv/bin/python passes.py "$(echo "$work"/venv/lib/python3*/site-packages/nvidia/cu13/lib/libnvperf_host.so)"
