/*
title = "Collectives by operation and size"
topic = "ranks"
place = 1
page = false
question = "What do collectives cost: waiting for the last rank, or transfer?"
main = ["operation", "bytes", "calls", "kernel_ns", "waiting_ns", "transfer_ns", "skew_ns", "bus_bytes_per_s"]
details = ["communicator", "total_ns"]
description = """
Groups the collectives of NCCL by communicator, operation and size of the message. Collectives of several ranks are matched by
communicator and order where their traces are there. transfer_ns is how long all ranks are in one, waiting_ns how long a rank is
there before the last one comes. Sizes and communicators are those of NCCL's NVTX payloads. Bandwidths are those of nccl-tests, over
transfer_ns: size / time, and the same times 2(n-1)/n for AllReduce, (n-1)/n for AllGather and ReduceScatter, whose size is that of
all ranks together, and 1 for Broadcast and Reduce. Of one rank alone nobody knows what of its time is waiting."""
reading = """
Much waiting and little transfer: see ranks for who is late; a faster link or overlap would not help. Much transfer at a low
bus_bytes_per_s: compare it with what nccl-tests measures for that size between these GPUs. Small messages have a low one by nature:
send fewer, larger ones."""
empty = "No kernels of NCCL are recorded in this scope."

[columns]
operation = "AllReduce, AllGather, SendRecv …; NULL where the kernel's name does not say"
bytes = "Size of the message as NCCL states it: what a rank gives, of a ReduceScatter what it gets; NULL without NCCL's NVTX payloads"
calls = "How many there were; of one rank where they are not matched"
ranks = "Ranks that took part, of those whose traces are there; NULL where they are not matched"
kernel_ns = "How long the kernel runs on a rank; a mean"
transfer_ns = "How long all ranks are in it; a median"
waiting_ns = "How long a rank waits in it for the last one; a mean over collectives and ranks"
skew_ns = "From the first to the last arrival; a median"
max_skew_ns = "The largest"
algorithm_bytes_per_s = "Size / transfer_ns, as nccl-tests defines it"
bus_bytes_per_s = "The bandwidth of each link that this takes, as nccl-tests defines it"
total_ns = "Sum over all kernels of all ranks"
communicator = "NCCL's id of the communicator; NULL where it is not known"

[notes]
clock = "SELECT clock FROM rank_run WHERE clock IS NOT NULL"
bytes = """
SELECT 'sizes are in the NVTX payloads of NCCL, which this trace does not have, or not of all kernels: capture with -t cuda,nvtx, and export with nsys export --include-blobs=true'
FROM answer WHERE bytes IS NULL HAVING count(*) > 0"""
unmatched = "SELECT unmatched FROM rank_run WHERE unmatched IS NOT NULL"
alone = """
SELECT 'the collectives are matched with no other rank''s: what of their time is waiting is not known'
FROM answer HAVING count(*) > 0 AND count(ranks) = 0"""
*/
WITH kernels_of AS (
    SELECT collective, avg(end_ns - start_ns) AS kernel_ns, sum(end_ns - start_ns)::BIGINT AS total_ns
    FROM collective_ranks
    GROUP BY collective
),
matched AS (
    SELECT
        c.operation, c.bytes, count(*) AS calls, c.ranks, avg(k.kernel_ns) AS kernel_ns, median(c.transfer_ns) AS transfer_ns,
        sum(c.waiting_ns) / nullif(sum(c.ranks) FILTER (c.waiting_ns IS NOT NULL), 0) AS waiting_ns, median(c.skew_ns) AS skew_ns,
        max(c.skew_ns) AS max_skew_ns, sum(k.total_ns)::BIGINT AS total_ns, c.communicator
    FROM collectives AS c
    JOIN kernels_of AS k USING (collective)
    GROUP BY c.operation, c.bytes, c.ranks, c.communicator
),
alone AS (
    SELECT
        operation, bytes, count(*) AS calls, NULL::BIGINT AS ranks, avg(end_ns - start_ns) AS kernel_ns, NULL::DOUBLE AS transfer_ns,
        NULL::DOUBLE AS waiting_ns, NULL::DOUBLE AS skew_ns, NULL::BIGINT AS max_skew_ns, sum(end_ns - start_ns)::BIGINT AS total_ns, communicator
    FROM nccl_kernels
    WHERE operation IN ('SendRecv', 'Send', 'Recv') OR NOT EXISTS (FROM collectives)
    GROUP BY operation, bytes, communicator
),
sized AS (
    SELECT *, CASE WHEN operation IN ('AllGather', 'ReduceScatter') THEN bytes * ranks ELSE bytes END AS size_bytes
    FROM (FROM matched UNION ALL FROM alone)
)
SELECT
    operation, bytes, calls, ranks, kernel_ns, transfer_ns, waiting_ns, skew_ns, max_skew_ns,
    1e9 * size_bytes / nullif(transfer_ns, 0) AS algorithm_bytes_per_s,
    1e9 * size_bytes / nullif(transfer_ns, 0) * CASE
        WHEN operation = 'AllReduce' THEN 2.0 * (ranks - 1) / ranks
        WHEN operation IN ('AllGather', 'ReduceScatter') THEN 1.0 * (ranks - 1) / ranks
        WHEN operation IN ('Broadcast', 'Reduce') THEN 1.0
    END AS bus_bytes_per_s,
    total_ns, communicator
FROM sized
ORDER BY total_ns DESC, operation, bytes, communicator
