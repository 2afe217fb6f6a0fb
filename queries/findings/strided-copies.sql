/*
code = "NSI309"
title = "Strided copies take far longer than their bytes need"
family = "strided-copies"
explains = ["copy", "small-copies", "tiny-d2d", "sync-after-copy"]
meaning = """
cudaMemcpy2D and cudaMemcpy3D copy row by row. The copy engine moves each row by itself: a column, whose rows are a few
bytes long, takes far longer than the same bytes in one piece."""
evidence = [
    "{copies:copy|copies} {per} of {mean_bytes} each ({copy_kind}, {name}): {copy_ns}",
    "{mean_ns} each at {rate_bytes_per_s}; in one piece, one takes about {contiguous_ns}",
]
skip_if = "The rows are long (1 KiB or more): then something else slows the copies, such as other traffic on the bus."
effort = "function"
estimate = """
High: the time of the copies without that of one kernel and one contiguous copy. Low: without a kernel and a contiguous
copy for each of them. Both at most the time in which only copies run, for copies to and from the host."""
links = ["CUDA C++ Best Practices Guide, Data Transfer Between Host and Device"]
report = "copies"
when = "SELECT 1 FROM _api_names WHERE regexp_matches(name, 'emcpy[23]D') LIMIT 1"

[fix.to_host]
any = """
Gather the columns with a kernel into one contiguous array on the GPU (a thread for each row), and copy that once; or
let the kernel that computes them write them to pinned memory of the host."""
cupy = "Make the columns contiguous on the GPU (cupy.ascontiguousarray, cupy.stack), and copy the result once."

[fix.to_gpu]
any = """
Copy all columns in one contiguous piece from pinned memory, and let a kernel write them to their places (a thread for
each row)."""

[fix.between]
any = """
Copy with a kernel, a thread for each row; between GPUs, pack the columns into a contiguous buffer with a kernel, send
that, and unpack it with another one."""

[params]
latency_ns = [2500, "What a copy takes in addition to its bytes (2.5 µs: short copies in traces of H100 and H200)"]
kernel_ns = [2000, "What a kernel takes that gathers a few columns (2 µs: the shortest kernels take 1 to 2)"]
peer_bytes_per_s = [20e9, "Rate of a copy between GPUs where none is faster (20 GB/s: PCI Express of generation 4)"]
slow = [2.0, "How many times as long as a contiguous copy it takes (2: what the bus varies by)"]
min_pct = [2.0, "Share of the step from which these copies are reported (2: twice what runs differ by)"]
large_bytes = [1048576, "Size from which slow copies within the GPU are a construct of the catalog (1 MiB)"]
*/
WITH peer_rates AS (
    SELECT
        greatest(max(1e9 * size_bytes / duration_ns) FILTER (copy_kind = 'P2P' AND duration_ns > 0), $peer_bytes_per_s)
            AS peer_bytes_per_s
    FROM memcpys
),
strided_copies AS (
    SELECT
        c.*, c.total_ns / c.calls AS mean_ns, CASE
            WHEN c.copy_kind = 'D2D' THEN g.memory_bytes_per_s / 2
            WHEN c.copy_kind = 'P2P' THEN p.peer_bytes_per_s ELSE r.bytes_per_s
        END AS contiguous_bytes_per_s, 1e9 * c.avg_bytes / contiguous_bytes_per_s AS bytes_ns
    FROM _steady_copies AS c, _pinned_rate AS r, peer_rates AS p,
        (SELECT max(memory_bytes_per_s) AS memory_bytes_per_s FROM gpus) AS g
    WHERE regexp_matches(c.name, 'emcpy[23]D') AND 'pageable' NOT IN (c.source_memory, c.target_memory)
        AND (c.copy_kind IN ('H2D', 'D2H', 'P2P') OR c.copy_kind = 'D2D' AND c.avg_bytes < $large_bytes)
),
copy_times AS (
    SELECT coalesce(sum(time_ns), 0) AS only_ns FROM step_budget WHERE part = 'copy'
)
SELECT
    least(
        (c.total_ns - ($kernel_ns + $latency_ns) * least(c.calls, t.units) - c.calls * c.bytes_ns) / t.units,
        if(c.copy_kind IN ('H2D', 'D2H'), o.only_ns / t.units, t.wall_ns)
    ) AS recoverable_ns,
    greatest(
        least((c.total_ns - c.calls * ($kernel_ns + $latency_ns + c.bytes_ns)) / t.units, recoverable_ns), 0
    ) AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    c.name AS place,
    CASE c.copy_kind WHEN 'D2H' THEN 'to_host' WHEN 'H2D' THEN 'to_gpu' ELSE 'between' END AS cure_case,
    c.copy_kind, c.name, c.calls / t.units AS copies, c.avg_bytes AS mean_bytes, c.total_ns / t.units AS copy_ns,
    c.mean_ns, c.bandwidth_bytes_per_s AS rate_bytes_per_s, $latency_ns + c.bytes_ns AS contiguous_ns
FROM strided_copies AS c, copy_times AS o, _step_totals AS t
WHERE c.mean_ns >= $slow * contiguous_ns AND copy_ns >= t.wall_ns * $min_pct / 100 AND recoverable_ns > 0
ORDER BY recoverable_ns DESC, c.copy_kind, c.name
LIMIT 1
