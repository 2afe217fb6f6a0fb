/*
code = "NSI306"
title = "Data passes from one GPU to another through copies to the host"
family = "relayed-copies"
explains = ["copy", "wait", "late-host", "start", "small-copies", "sync-after-copy", "alternating"]
meaning = """
The program copies from one GPU to the host, and as many bytes from the host to another GPU. A copy between the GPUs
crosses the bus once or uses NVLink, and the host need not wait in between."""
evidence = [
    """{copies:copy|copies} {per} of {size_bytes} from a GPU to the host, each followed by one of the same size to
    another GPU, {delay_ns} later (median)""",
    "from the start of the first to the end of the last, they are in progress for {passing_ns} of {wall_ns} {per}",
    "they run for {copy_ns}",
]
skip_if = """
The host changes the data in between, or what it copies to a GPU is something else of the same size, as the next input
of a pipeline."""
effort = "function"
estimate = """
High: the time from the start of a copy to the host to the end of the copy to the other GPU, at most that in which no
kernel runs, without what direct copies take. Low: the time of the copies themselves, without that."""
links = ["CUDA C++ Programming Guide, Peer-to-Peer Memory Copy"]
report = "copies"
when = "SELECT 1 FROM used_gpus HAVING count(*) > 1"

[fix]
any = """
If the host only passes the data on, copy them from GPU to GPU without the host: peer access and cudaMemcpyPeerAsync on
a stream, ordered by events; between processes, NCCL send and receive."""
cuda = """
If the host only passes the data on, call cudaDeviceEnablePeerAccess once for each pair of GPUs, and cudaMemcpyPeerAsync
instead of both copies, ordered by events (cudaStreamWaitEvent) instead of waits of the host; between processes, call
ncclSend and ncclRecv."""
pytorch = """
If the host only passes the data on, copy straight: tensor.to("cuda:1", non_blocking=True) instead of .cpu() and then
.cuda(1); between processes, call torch.distributed.send and recv with NCCL."""
jax = "If the host only passes the data on, call jax.device_put(array, device) on the array, not on a copy of numpy."
cupy = """
If the host only passes the data on, copy straight: with the other device current, cupy.asarray(array) instead of
cupy.asnumpy and back."""

[params]
min_bytes = [4096, "Smallest copies that count (4 KiB: less may be numbers such as a residual)"]
min_pairs = [8, "Fewest such copies in the trace (8: fewer are a coincidence, or the start)"]
min_share = [0.9, "Share of the copies of this size that follow each other (0.9: the edges of steps cut some)"]
delay_ns = [200000, "Longest time between them that the host needs to pass data on, without the bytes (0.2 ms)"]
host_bytes_per_s = [1e9, "Lowest rate at which the host passes data on (1 GB/s: one thread)"]
direct_ns = [5000, "What a direct copy takes in addition to its bytes (5 µs: short ones in traces of two H200)"]
direct_bytes_per_s = [20e9, "Rate of a direct copy (20 GB/s: PCI Express of generation 4)"]
min_pct = [2.0, "Share of the step in which such copies are in progress (2: twice what runs differ by)"]
*/
WITH copies AS (
    SELECT m.process_id, m.device_id, m.copy_kind, m.size_bytes, m.start_ns, m.end_ns, m.duration_ns
    FROM (FROM memcpys WHERE copy_kind IN ('D2H', 'H2D') AND size_bytes >= $min_bytes) AS m
    ASOF JOIN _steady_windows AS s ON s.process_id = m.process_id AND s.start_ns <= m.start_ns
    WHERE m.start_ns < s.end_ns
),
reads AS (
    SELECT c.*, d.device_id AS target_id
    FROM copies AS c
    JOIN (SELECT DISTINCT process_id, device_id FROM copies) AS d
        ON d.process_id = c.process_id AND d.device_id <> c.device_id
    WHERE c.copy_kind = 'D2H'
),
writes AS (
    SELECT *, lag(start_ns) OVER (PARTITION BY process_id, device_id, size_bytes ORDER BY start_ns) AS last_ns
    FROM copies
    WHERE copy_kind = 'H2D'
),
pairs AS (
    SELECT
        w.process_id, w.size_bytes, r.start_ns, w.end_ns, w.start_ns - r.end_ns AS delay_ns,
        max(w.end_ns) OVER (
            PARTITION BY w.process_id ORDER BY r.start_ns, w.end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM writes AS w
    ASOF JOIN reads AS r ON r.process_id = w.process_id AND r.target_id = w.device_id AND r.size_bytes = w.size_bytes
        AND r.end_ns <= w.start_ns
    WHERE w.last_ns IS NULL OR r.start_ns >= w.last_ns
),
relays AS (
    SELECT
        p.process_id, p.size_bytes, count(*) AS copies, median(p.delay_ns) AS delay_ns, any_value(c.copy_ns) AS copy_ns,
        sum(greatest(0, p.end_ns - greatest(p.start_ns, coalesce(p.reached_ns, p.start_ns)))) AS span_ns
    FROM pairs AS p
    JOIN (
        SELECT
            process_id, size_bytes, count(*) FILTER (copy_kind = 'H2D') AS writes,
            count(*) FILTER (copy_kind = 'D2H') AS reads, sum(duration_ns) AS copy_ns
        FROM copies GROUP BY ALL
    ) AS c USING (process_id, size_bytes)
    GROUP BY ALL
    HAVING count(*) >= $min_pairs AND count(*) >= $min_share * greatest(any_value(c.writes), any_value(c.reads))
        AND delay_ns <= $delay_ns + 1e9 * p.size_bytes / $host_bytes_per_s
)
SELECT
    r.copies * ($direct_ns + 1e9 * r.size_bytes / $direct_bytes_per_s) / t.units AS direct_ns,
    -- Of all GPUs together: a step of the program is one of each GPU.
    r.span_ns * g.gpus / t.units AS passing_ns,
    least(passing_ns, t.wall_ns - t.kernel_ns) - direct_ns AS recoverable_ns,
    least(greatest(r.copy_ns / t.units - direct_ns, 0), recoverable_ns) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct, NULL AS place,
    r.copies * g.gpus / t.units AS copies, r.size_bytes, r.delay_ns, t.wall_ns, r.copy_ns * g.gpus / t.units AS copy_ns
FROM relays AS r, _step_totals AS t, (SELECT count(DISTINCT gpu_id) AS gpus FROM step_budget) AS g
WHERE t.has_steps AND recoverable_ns > 0 AND 100 * passing_ns >= $min_pct * t.wall_ns
ORDER BY recoverable_ns DESC, r.size_bytes
LIMIT 1
