/*
title = "Communication and copies: overlapped with kernels, and if not, why"
topic = "program"
place = 3
question = "Which communication and copies delay the kernels, and why do they not overlap?"
examples = ["", "--steady"]
page = false
main = [
    "operation", "calls", "total_ns", "overlapped_ns", "exposed_ns", "exposed_pct", "same_stream_ns", "dependency_ns",
    "launched_late_ns", "no_more_work_ns",
]
details = ["bytes", "stream", "kernel_streams", "gpu_id"]
description = """
Groups NCCL kernels by operation, and copies between host and GPU or between GPUs by direction, on each stream.
overlapped_ns is the time in which a kernel that computes runs on the same GPU, exposed_ns the rest. The exposed
time of each operation has one reason, which follows from the first kernel, memset or copy within the GPU that
starts after its exposure began. launched_late: its launch call began only after the exposure began, so the host had
given the GPU nothing to overlap with. same_stream: it was launched before, on the stream of the operation, so it
had to wait. dependency: it was launched before, on another stream, and did not start: it waits for the operation,
by an event or by the rules of the default stream, or for something else before it. no_more_work: none follows.
Kernels in CUDA graphs have the time of the graph's launch call."""
reading = """
same_stream: move the operation to a stream of its own. dependency: the next kernel needs the result, so begin the
operation earlier, or divide it and let the first part be used while the second one runs. launched_late: see gaps and
launches; a copy that the program waits for does this, too. Exposed NCCL kernels also include the wait for other ranks:
see ranks."""
empty = "No communication, and no copies between host and GPU, are recorded in this scope."

[shares]
exposed_pct = "total_ns"

[columns]
operation = "AllReduce, SendRecv … of NCCL, H2D copy, D2H copy …"
calls = "How many"
total_ns = "Sum of their durations"
overlapped_ns = "Part in which kernels ran on the same GPU"
exposed_ns = "Part in which none did"
exposed_pct = "exposed_ns as a share of total_ns"
same_stream_ns = "Exposed time before work on the same stream that was launched earlier"
dependency_ns = "Exposed time before work on another stream that was launched earlier"
launched_late_ns = "Exposed time before work that was launched later"
no_more_work_ns = "Exposed time of operations that nothing follows"
bytes = "Bytes of all calls; NULL if unknown"
stream = "CUDA stream of the operations"
kernel_streams = "Streams of the kernels that ran at the same time, or come next"
gpu_id = "The machine's GPU where the trace says which, else the CUDA device number"

[notes]
worst.text = "{exposed_ns} of {operation} are exposed on stream {stream_id}, most of it {why}"
worst.query = """
SELECT
    exposed_ns, operation, stream AS stream_id,
    CASE greatest(same_stream_ns, dependency_ns, launched_late_ns, no_more_work_ns)
        WHEN same_stream_ns THEN 'because the next kernel is on the same stream'
        WHEN dependency_ns THEN 'before kernels that had been launched, and wait'
        WHEN launched_late_ns THEN 'because the next kernel had not been launched'
        ELSE 'at the end of the work'
    END AS why
FROM answer WHERE exposed_ns > 0 ORDER BY exposed_ns DESC, operation LIMIT 1"""

graphs.use = "whole_graphs"
*/
WITH operations AS MATERIALIZED (
    SELECT
        gpu_of(o.process_id, o.device_id) AS gpu_id, o.process_id, o.stream_id, o.start_ns,
        greatest(o.start_ns, o.end_ns) AS end_ns, o.size_bytes, coalesce(o.api_start_ns, o.start_ns) AS call_ns,
        CASE
            WHEN n.family = 'comm' THEN coalesce(
                nullif(regexp_extract(n.name, '(?i)nccl(?:Dev)?Kernel_([A-Za-z]+)', 1), ''), kernel_base_name(n.name)
            )
            WHEN o.kind = 'copy' AND o.label <> 'D2D copy' THEN o.label
        END AS operation
    FROM gpu_ops_in_nvtx AS o
    LEFT JOIN kernel_names AS n USING (name_id)
),
kernels AS (
    SELECT
        *,
        max(end_ns) OVER (
            PARTITION BY gpu_id ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM operations WHERE operation IS NULL
),
-- What each kernel adds to the time in which any runs: these pieces are disjoint.
pieces AS (
    SELECT gpu_id, greatest(start_ns, coalesce(reached_ns, start_ns)) AS start_ns, end_ns
    FROM kernels WHERE reached_ns IS NULL OR end_ns > reached_ns
),
running_times AS MATERIALIZED (
    SELECT
        gpu_id, start_ns, end_ns,
        sum(end_ns - start_ns) OVER (PARTITION BY gpu_id ORDER BY start_ns, end_ns ROWS UNBOUNDED PRECEDING) AS until_ns
    FROM pieces WHERE end_ns > start_ns
),
numbered_operations AS (
    SELECT *, row_number() OVER (ORDER BY gpu_id, start_ns, end_ns, stream_id) AS number
    FROM operations WHERE operation IS NOT NULL
),
overlapped AS (
    SELECT m.number, sum(m.sign * (t.until_ns - greatest(t.end_ns - m.at_ns, 0)))::BIGINT AS overlapped_ns
    FROM (
        SELECT number, gpu_id, unnest([start_ns, end_ns]) AS at_ns, unnest([-1, 1]) AS sign FROM numbered_operations
    ) AS m
    ASOF JOIN running_times AS t ON t.gpu_id = m.gpu_id AND t.start_ns <= m.at_ns
    GROUP BY m.number
),
-- When no kernel ran for the first time: at its start, or when the kernels that ran then had ended.
exposures AS (
    SELECT
        o.*, coalesce(v.overlapped_ns, 0) AS overlapped_ns,
        greatest(o.start_ns, coalesce(k.end_ns, o.start_ns)) AS exposed_from_ns
    FROM numbered_operations AS o
    LEFT JOIN overlapped AS v USING (number)
    ASOF LEFT JOIN (
        SELECT gpu_id, start_ns, greatest(end_ns, coalesce(reached_ns, end_ns)) AS end_ns FROM kernels
    ) AS k ON k.gpu_id = o.gpu_id AND k.start_ns <= o.start_ns
),
reasons AS (
    SELECT
        e.*, e.end_ns - e.start_ns - e.overlapped_ns AS exposed_ns, k.stream_id AS kernel_stream,
        CASE
            WHEN k.start_ns IS NULL THEN 'no more work'
            WHEN k.call_ns >= e.exposed_from_ns THEN 'launched late'
            WHEN k.stream_id = e.stream_id AND k.process_id = e.process_id THEN 'same stream'
            ELSE 'dependency'
        END AS reason
    FROM exposures AS e
    ASOF LEFT JOIN kernels AS k ON k.gpu_id = e.gpu_id AND k.start_ns >= e.exposed_from_ns
)
SELECT
    operation,
    count(*) AS calls,
    sum(end_ns - start_ns)::BIGINT AS total_ns,
    sum(overlapped_ns)::BIGINT AS overlapped_ns,
    sum(exposed_ns)::BIGINT AS exposed_ns,
    100.0 * sum(exposed_ns) / nullif(sum(end_ns - start_ns), 0) AS exposed_pct,
    coalesce(sum(exposed_ns) FILTER (reason = 'same stream'), 0)::BIGINT AS same_stream_ns,
    coalesce(sum(exposed_ns) FILTER (reason = 'dependency'), 0)::BIGINT AS dependency_ns,
    coalesce(sum(exposed_ns) FILTER (reason = 'launched late'), 0)::BIGINT AS launched_late_ns,
    coalesce(sum(exposed_ns) FILTER (reason = 'no more work'), 0)::BIGINT AS no_more_work_ns,
    CASE WHEN count(size_bytes) = count(*) THEN sum(size_bytes)::BIGINT END AS bytes,
    stream_id AS stream,
    string_agg(DISTINCT kernel_stream, ', ' ORDER BY kernel_stream) AS kernel_streams,
    gpu_id
FROM reasons
GROUP BY operation, gpu_id, process_id, stream_id
ORDER BY exposed_ns DESC, total_ns DESC, operation, gpu_id, stream
