/*
title = "Collectives by operation and size"
topic = "ranks"
place = 1
page = false
question = "What do collectives cost: waiting for the last rank, or transfer?"
examples = ["'run/rank*.nsys-rep'", "'run/rank*.nsys-rep' --steady"]
main = [
    "operation", "bytes", "calls", "kernel_ns", "waiting_ns", "transfer_ns", "skew_ns", "bus_bytes_per_s", "nvlink_pct",
]
details = ["communicator", "total_ns", "max_skew_ns"]
description = """
Groups NCCL collectives by communicator, operation and message size; in a program without NCCL, MPI collectives.
Collectives of several ranks are matched by communicator and order where the traces of those ranks are given.
transfer_ns is the time in which all ranks are in the collective, waiting_ns the time that a rank waits in it for the
last one. Sizes and communicators are those of NCCL's NVTX payloads. Bandwidths are those of nccl-tests, over
transfer_ns: size / time, and the same times 2(n-1)/n for AllReduce, (n-1)/n for AllGather, ReduceScatter and AlltoAll,
with the size of all ranks together, and 1 for Broadcast, Reduce and SendRecv. Sends and receives of all
ranks in one call are an AlltoAll. What the NVLinks carry is in queries/catalog/links.toml. From one rank alone, waiting
cannot be separated from transfer."""
reading = """
Much waiting and little transfer: see ranks for which rank is late; a faster link or overlap would not help. Much
transfer at a low bus_bytes_per_s or nvlink_pct: compare it with what nccl-tests measures for that size between
these GPUs. Small messages always have a low bandwidth: send fewer, larger ones. More than 100% of the NVLinks
means NVLink SHARP, whose switches do the reduction."""
empty = "No NCCL kernels and no MPI collectives are recorded in this scope."

[columns]
operation = "AllReduce, AllGather, SendRecv …; NULL where the kernel's name does not say"
bytes = """\
Message size as NCCL states it: what a rank sends, for a ReduceScatter what it receives, for an AlltoAll what it sends \
to each rank, on average, by the rank that sends most; NULL without NCCL's NVTX payloads"""
calls = "Number of collectives; for SendRecv, of messages; where ranks are not matched, kernels of all ranks"
ranks = "Ranks that took part, among those whose traces are given; NULL where they are not matched"
kernel_ns = "Mean duration of the kernel on a rank"
transfer_ns = "Time in which all ranks are in it; a median"
waiting_ns = "Time that a rank waits in it for the last one; a mean over collectives and ranks"
skew_ns = "Time from the first to the last arrival; a median"
max_skew_ns = "The largest skew"
algorithm_bytes_per_s = "Algorithm bandwidth: size / transfer_ns, as nccl-tests defines it"
bus_bytes_per_s = "Bus bandwidth: the bandwidth that each link needs for this, as nccl-tests defines it"
nvlink_pct = """\
bus_bytes_per_s as a share of what all NVLinks of such a GPU carry in one direction; NULL unless all ranks are known \
to be on one host, with GPUs whose NVLinks are known"""
total_ns = "Sum over all kernels of all ranks"
communicator = "NCCL's id of the communicator; NULL where unknown"

[notes]
clock.use = "clock"

bytes.text = """
sizes come from NCCL's NVTX payloads, which this trace does not have, or not for all kernels: capture with -t cuda,nvtx,
and export with nsys export --include-blobs=true"""
bytes.query = """
SELECT count(*) AS rows FROM answer WHERE bytes IS NULL HAVING count(*) > 0 AND EXISTS (FROM nccl_kernels)"""

missing.text = """
<{missing_ranks:rank} {#missing_ranks:is|are} not in these traces><; {both_silent_ranks:rank} ran no NCCL
kernels><{silent_ranks:rank} ran no NCCL kernels>, so how many ranks a communicator has is unknown, and with it the
bandwidths that depend on it"""
missing.query = """
SELECT
    missing_ranks, CASE WHEN missing_ranks IS NOT NULL THEN silent_ranks END AS both_silent_ranks,
    CASE WHEN missing_ranks IS NULL THEN silent_ranks END AS silent_ranks
FROM rank_run
WHERE (missing_ranks IS NOT NULL OR silent_ranks IS NOT NULL) AND EXISTS (FROM answer WHERE ranks IS NOT NULL)"""

others.text = "the bandwidths count the ranks whose traces are given: if the communicator has more, they are too low"
others.query = """
FROM rank_run
WHERE missing_ranks IS NULL AND silent_ranks IS NULL AND numbered_by IN ('the files'' names', 'order')
    AND EXISTS (FROM answer WHERE bus_bytes_per_s IS NOT NULL AND operation <> 'SendRecv')"""

unmatched.use = "unmatched"

alone.text = "the collectives are not matched with those of another rank: how much of their time is waiting is unknown"
alone.query = "SELECT count(*) AS rows FROM answer HAVING count(*) > 0 AND count(ranks) = 0"
*/
WITH kernel_times AS (
    SELECT collective, avg(end_ns - start_ns) AS kernel_ns, sum(end_ns - start_ns)::BIGINT AS total_ns
    FROM collective_ranks
    GROUP BY collective
),
matched_collectives AS (
    SELECT
        c.operation, c.bytes, count(*) AS calls, c.ranks, avg(k.kernel_ns) AS kernel_ns,
        median(c.transfer_ns) AS transfer_ns,
        sum(c.waiting_ns) / nullif(sum(c.ranks) FILTER (c.waiting_ns IS NOT NULL), 0) AS waiting_ns,
        median(c.skew_ns) AS skew_ns,
        max(c.skew_ns) AS max_skew_ns, sum(k.total_ns)::BIGINT AS total_ns, c.communicator
    FROM collectives AS c
    JOIN kernel_times AS k USING (collective)
    GROUP BY c.operation, c.bytes, c.ranks, c.communicator
),
-- Communicators in which each message has kernels of its own: there, the times of the messages are those of the
-- kernels.
unbatched_communicators AS (
    SELECT communicator
    FROM (SELECT communicator, count(*) AS messages FROM messages GROUP BY communicator)
    JOIN (
        SELECT communicator, count(*) AS kernels FROM nccl_kernels WHERE operation = 'SendRecv' GROUP BY communicator
    ) USING (communicator)
    WHERE kernels = 2 * messages
),
message_totals AS (
    SELECT
        'SendRecv' AS operation, bytes, count(*) AS calls, 2 AS ranks, avg(send_ns + receive_ns) / 2 AS kernel_ns,
        median(transfer_ns) AS transfer_ns,
        avg(send_waiting_ns + receive_waiting_ns) / 2 AS waiting_ns, median(arrived_ns - start_ns) AS skew_ns,
        max(arrived_ns - start_ns) AS max_skew_ns, sum(send_ns + receive_ns)::BIGINT AS total_ns, communicator
    FROM messages
    WHERE communicator IN (FROM unbatched_communicators)
    GROUP BY bytes, communicator
),
unmatched_kernels AS (
    SELECT
        operation, bytes, count(*) AS calls, NULL::BIGINT AS ranks, avg(end_ns - start_ns) AS kernel_ns,
        NULL::DOUBLE AS transfer_ns,
        NULL::DOUBLE AS waiting_ns, NULL::DOUBLE AS skew_ns, NULL::BIGINT AS max_skew_ns,
        sum(end_ns - start_ns)::BIGINT AS total_ns, communicator
    FROM nccl_kernels
    WHERE CASE
        WHEN operation IN ('SendRecv', 'Send', 'Recv')
            THEN NOT coalesce(communicator IN (FROM unbatched_communicators), false)
        ELSE NOT EXISTS (FROM collectives)
    END
    GROUP BY operation, bytes, communicator
),
-- Communicators whose ranks are on one host, each on a GPU whose product has NVLinks. A trace does not show PCIe and
-- networks.
nvlink_communicators AS (
    SELECT communicator, min(l.nvlink_bytes_per_s) AS nvlink_bytes_per_s
    FROM (SELECT DISTINCT c.communicator, o.rank FROM collectives AS c JOIN collective_ranks AS o USING (collective)
        UNION SELECT communicator, sender FROM messages UNION SELECT communicator, receiver FROM messages) AS m
    JOIN ranks AS r USING (rank)
    LEFT JOIN nvlinks() AS l ON regexp_full_match(r.gpu, l.pattern)
    GROUP BY communicator
    HAVING count(l.nvlink_bytes_per_s) = count(*) AND count(r.host_number) = count(*)
        AND count(DISTINCT r.host_number) = 1
        AND count(DISTINCT r.gpu_id) = count(*)
        AND EXISTS (FROM nccl_kernels)
),
-- How many ranks a communicator has is known only where none is missing.
groups_with_ranks AS (
    SELECT
        *,
        CASE WHEN NOT EXISTS (FROM rank_run WHERE coalesce(missing_ranks, silent_ranks) IS NOT NULL) THEN ranks END
            AS all_ranks
    FROM (FROM matched_collectives UNION ALL FROM message_totals UNION ALL FROM unmatched_kernels)
),
groups_with_size AS (
    SELECT
        *,
        -- MPI states the size of all messages of an AlltoAll.
        CASE
            WHEN operation IN ('AllGather', 'ReduceScatter')
                OR operation = 'AlltoAll' AND EXISTS (FROM nccl_kernels) THEN bytes * all_ranks
            ELSE bytes
        END AS size_bytes
    FROM groups_with_ranks
)
SELECT
    s.operation, s.bytes, s.calls, s.ranks, s.kernel_ns, s.transfer_ns, s.waiting_ns, s.skew_ns, s.max_skew_ns,
    s.algorithm_bytes_per_s, s.algorithm_bytes_per_s * s.bus_factor AS bus_bytes_per_s,
    100 * s.algorithm_bytes_per_s * s.bus_factor / l.nvlink_bytes_per_s AS nvlink_pct, s.total_ns, s.communicator
FROM (
    SELECT
        *, 1e9 * size_bytes / nullif(transfer_ns, 0) AS algorithm_bytes_per_s,
        CASE
            WHEN operation = 'AllReduce' THEN 2.0 * (all_ranks - 1) / all_ranks
            WHEN operation IN ('AllGather', 'ReduceScatter', 'AlltoAll') THEN 1.0 * (all_ranks - 1) / all_ranks
            WHEN operation IN ('Broadcast', 'Reduce', 'SendRecv') THEN 1.0
        END AS bus_factor
    FROM groups_with_size
) AS s
LEFT JOIN nvlink_communicators AS l ON s.communicator IS NOT DISTINCT FROM l.communicator AND s.ranks IS NOT NULL
ORDER BY s.total_ns DESC, s.operation, s.bytes, s.communicator
