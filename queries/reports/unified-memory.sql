/*
title = "Migrations and page faults of unified memory"
topic = "memory"
place = 4
question = "Which pages of unified memory move, because of which kernel or range, and what does that cost?"
examples = ["", "--from 1s --to 2s"]
aliases = ["um_sum", "um_total_sum", "um_cpu_page_faults_sum"]
main = ["wall_pct", "total_ns", "calls", "event", "name", "nvtx_path", "size_bytes", "faults"]
description = """
Adds up the copies that moved unified memory (cudaMallocManaged) and the page faults, by what ran meanwhile: the
kernel that had started last and was still running when the event began, and the innermost NVTX range of the call
that launched it; without a kernel, the range of the thread that makes the most launches. in_kernels_ns is how much
of the events' time was within those kernels, which wait for them at least in part. Page faults need
--cuda-um-gpu-page-faults=true and --cuda-um-cpu-page-faults=true."""
reading = """
Migrations to the GPU during a kernel: it waits for pages that it touches first; cudaMemPrefetchAsync before the
launch moves them in large pieces. Migrations back, or faults of the CPU: prefetch to cudaCpuDeviceId before the
host reads. Both repeatedly: cudaMemAdvise (SetReadMostly, SetPreferredLocation, SetAccessedBy), or ordinary device
or host memory and explicit copies. Evictions: more memory is used than the GPU has."""
empty = "No unified memory migrations or page faults are recorded in this scope"

[columns]
event = "UM H2D, UM D2H or UM D2D: pages moved; GPU page faults, CPU page faults"
cause = """\
Why the pages moved: page fault, prefetch, speculative, eviction, access counters, unknown; NULL for page faults"""
name = "The kernel that ran when it began; NULL when none did"
nvtx_path = "The innermost NVTX range; NULL outside all ranges"
calls = "Copies, groups of GPU page faults, or CPU page faults"
faults = "Page faults; NULL for copies"
size_bytes = "Bytes moved; NULL for page faults"
total_ns = "Sum of their durations; NULL for CPU page faults"
wall_pct = "total_ns as a share of the wall time"
in_kernels_ns = "The part of total_ns within the kernel"

[notes]
faults.text = """
page faults are not in the trace: capture with --cuda-um-gpu-page-faults=true --cuda-um-cpu-page-faults=true"""
faults.query = "SELECT count(*) AS rows FROM answer HAVING count(*) > 0 AND count(faults) = 0"

untraced.text = "nsys could not trace unified memory here: {message}"
untraced.query = """
SELECT trim(message) AS message
FROM diagnostics
WHERE message ILIKE '%unified memory cannot be traced%'
LIMIT 1"""
*/
SELECT
    event,
    cause,
    name,
    nvtx_path,
    count(*) AS calls,
    sum(faults)::BIGINT AS faults,
    sum(size_bytes)::BIGINT AS size_bytes,
    sum(duration_ns)::BIGINT AS total_ns,
    100.0 * sum(duration_ns)::BIGINT / (SELECT sum(duration_ns) FROM wall) AS wall_pct,
    sum(in_kernel_ns)::BIGINT AS in_kernels_ns
FROM _unified_memory_events
GROUP BY ALL
ORDER BY total_ns DESC NULLS LAST, calls DESC, event, cause, name, nvtx_path
