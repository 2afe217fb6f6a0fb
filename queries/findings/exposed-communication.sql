/*
code = "NSI501"
title = "Communication does not overlap with computation"
family = "communication"
symptom = "communication"
meaning = """
For this time the GPU runs only communication kernels, so computation waits for them or for the ranks that they wait
for."""
evidence = [
    "the GPU only communicates for {exposed_ns} {per} ({exposed_pct} of the wall time)",
    "{waiting_pct} of that is waiting for other ranks, which overlap does not hide",
    "{kernel_time_pct} of all kernel time is communication",
]
skip_if = "The ranks wait for a slow one, which is then the cause (see ranks); or the link is slow (see collectives)."
effort = "function"
estimate = """
The time in which the GPU only communicates, less the time in which it waits for other ranks where traces of these
show that. Overlap slows down both communication and computation."""
links = [
    "NCCL documentation, CUDA Stream Semantics",
    "PyTorch documentation, DistributedDataParallel",
    "JAX documentation, GPU performance tips",
]
example = "tests/data/ranks/ddp_b_rank0.sqlite"
report = "classify"
when = "SELECT 1 FROM classify_report WHERE part = 'communication' AND wall_pct >= $shown_pct"

[fix]
any = """
Overlap it with computation: start each transfer on another stream as soon as its data is ready, in several parts. Or
send less data."""
pytorch = """
Overlap it with computation: DistributedDataParallel reduces gradients in buckets during backward (bucket_cap_mb),
FSDP prefetches parameters (backward_prefetch, forward_prefetch); start other collectives with async_op=True and
wait() for them late. Or send less data."""
jax = """
Let XLA overlap it with computation: XLA_FLAGS=--xla_gpu_enable_latency_hiding_scheduler=true. Or shard differently,
so that less data is sent."""
cuda = """
Overlap it with computation: launch the collectives on a stream of their own as soon as their data is ready, in
several parts, and let the computing stream wait (cudaStreamWaitEvent) only where it needs the result. Or send less
data."""
cupy = """
Overlap it with computation: launch the collectives on a stream of their own, in several parts, and let the computing
stream wait (stream.wait_event) only where it needs the result. Or send less data."""
openacc = """
Overlap it with computation: communicate on one async queue and compute on another, first what others need, then the
interior; join them with wait(queue) async. Or send less data."""
openmp = """
Overlap it with computation: compute first what others need, then the interior in a target region with nowait while
the data is sent; join them with depend. Or send less data."""

[params]
min_waiting_pct = [10.0, "Waiting for other ranks is stated from this share of the exposed communication (a choice)"]
*/
WITH communication_kernels AS (
    SELECT name, sum(kernel_time_pct) AS kernel_time_pct FROM _steady_shapes WHERE family = 'comm' GROUP BY name
)
SELECT
    -- $waiting_pct is the share of the exposed communication in which a rank waits for others; NULL if it is unknown.
    c.recoverable_ns * (1 - coalesce($waiting_pct, 0) / 100) AS recoverable_ns,
    c.wall_pct * (1 - coalesce($waiting_pct, 0) / 100) AS wall_pct,
    (
        SELECT kernel_base_name(name) FROM communication_kernels ORDER BY kernel_time_pct DESC, name LIMIT 1
    ) AS place,
    c.time_ns AS exposed_ns,
    c.wall_pct AS exposed_pct,
    CASE WHEN $waiting_pct >= $min_waiting_pct THEN $waiting_pct END AS waiting_pct,
    (SELECT sum(kernel_time_pct) FROM communication_kernels) AS kernel_time_pct
FROM classify_report AS c
WHERE c.part = 'communication'
