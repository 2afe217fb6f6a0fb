/*
code = "NSI514"
title = "Large collectives use a small part of the NVLinks"
family = "slow-link"
is_cross_rank = true
overlaps = true
meaning = """
The GPUs of these ranks are on one host and have NVLinks, but large messages go between them far more slowly."""
evidence = [
    "{operation} of {bytes} goes at {bus_bytes_per_s} ({nvlink_pct} of the NVLinks), in {calls:call}",
    "{?is_pcie}that is what a PCIe link carries",
    "a rank only communicates for {transfer_ns} a {unit}",
]
skip_if = "The GPUs are not connected with each other by their NVLinks: nvidia-smi topo -m shows NV where they are."
effort = "flag"
estimate = """
What the transfers of such sizes would take less at half of the NVLinks' bandwidth, at most the time in which a rank
only communicates."""
links = ["NCCL documentation, Environment Variables", "nccl-tests, PERFORMANCE.md"]
report = "collectives"

[fix.pcie]
any = """
Run with NCCL_DEBUG=INFO: lines "via SHM" or "via NET" instead of "via P2P" mean that NCCL does not use the NVLinks.
Remove NCCL_P2P_DISABLE and NCCL_P2P_LEVEL; let the processes share IPC and /dev/shm (docker run --ipc=host), and see
all GPUs."""

[fix.protocol]
any = """
Run with NCCL_DEBUG=INFO, and compare with nccl-tests for that size. Remove NCCL_PROTO, NCCL_ALGO, NCCL_MAX_NCHANNELS
and NCCL_MAX_CTAS: they can force a protocol for small messages, or few channels."""

[params]
min_bytes = [16777216,
    "Smallest size that counts, of all ranks together (16 MiB reach half of the bandwidth on two H100)"]
max_nvlink_pct = [25.0, "Largest share of the NVLinks' bandwidth (measured: 48 to 54% for 12 to 32 MiB on two H100)"]
max_pcie_bytes_per_s = [64000000000, "What a PCIe 5.0 link of 16 lanes carries in one direction"]
*/
WITH sizes AS (
    SELECT
        c.operation, c.bytes, count(*) AS calls, median(c.transfer_ns) AS transfer_ns, any_value(c.ranks) AS ranks,
        c.communicator,
        c.bytes * CASE WHEN c.operation IN ('AllGather', 'ReduceScatter') THEN any_value(c.ranks) ELSE 1 END
            AS size_bytes
    FROM collectives AS c
    WHERE c.operation IN ('AllReduce', 'AllGather', 'ReduceScatter', 'AlltoAll', 'Broadcast') AND c.transfer_ns > 0
        AND c.arrived_ns > (SELECT min(start_ns) FROM rank_steps)
    GROUP BY c.operation, c.bytes, c.communicator
),
links AS (
    SELECT min(l.nvlink_bytes_per_s) AS nvlink_bytes_per_s
    FROM ranks AS r LEFT JOIN nvlinks() AS l ON regexp_full_match(r.gpu, l.pattern)
    HAVING count(l.nvlink_bytes_per_s) = count(*) AND count(r.host_number) = count(*)
        AND count(DISTINCT r.host_number) = 1 AND count(DISTINCT r.gpu_id) = count(*)
),
rates AS (
    SELECT
        s.*, 1e9 * size_bytes / transfer_ns
            * CASE WHEN operation = 'AllReduce' THEN 2.0 * (ranks - 1) / ranks
                WHEN operation = 'Broadcast' THEN 1 ELSE 1.0 * (ranks - 1) / ranks END AS bus_bytes_per_s,
        l.nvlink_bytes_per_s
    FROM sizes AS s, links AS l
    WHERE size_bytes >= $min_bytes
),
slow_rates AS (
    SELECT *, calls * transfer_ns * (1 - bus_bytes_per_s / (nvlink_bytes_per_s / 2)) AS lost_ns
    FROM rates WHERE 100 * bus_bytes_per_s <= $max_nvlink_pct * nvlink_bytes_per_s
),
run_steps AS (
    SELECT count(DISTINCT step) AS steps, avg(wall_ns) AS wall_ns, avg(transfer_ns) AS transfer_ns FROM rank_steps),
slowest AS (
    SELECT
        sum(lost_ns)::DOUBLE AS lost_ns, max_by(operation, lost_ns) AS operation, max_by(bytes, lost_ns) AS bytes,
        max_by(calls, lost_ns) AS calls, max_by(bus_bytes_per_s, lost_ns) AS bus_bytes_per_s,
        100 * max_by(bus_bytes_per_s / nvlink_bytes_per_s, lost_ns) AS nvlink_pct
    FROM slow_rates
    HAVING count(*) > 0
)
SELECT
    least(s.lost_ns / r.steps, r.transfer_ns) / $tokens AS recoverable_ns,
    100 * recoverable_ns * $tokens / r.wall_ns AS wall_pct,
    NULL AS place,
    s.operation, s.bytes, s.calls, s.bus_bytes_per_s, s.nvlink_pct,
    s.bus_bytes_per_s <= $max_pcie_bytes_per_s AS is_pcie,
    CASE WHEN is_pcie THEN 'pcie' ELSE 'protocol' END AS cure_case,
    r.transfer_ns, u.unit
FROM slowest AS s, run_steps AS r, rank_run AS u
