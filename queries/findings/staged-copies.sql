/*
code = "NSI305"
title = "Copies between GPUs go through host memory"
family = "staged-copies"
explains = ["copy", "start"]
meaning = """
One GPU cannot, or is not allowed to, access the memory of the other. So the driver copies in pieces to the host, and
from there to the other GPU. nsys gives the time of the last piece only: the rest looks like idle time."""
evidence = [
    "{copies:copy|copies} {per} of {mean_bytes} on average, from one GPU to another, in pieces through the host",
    "the GPUs are idle for {idle_ns} of {wall_ns} {per} meanwhile",
]
skip_if = "The GPUs cannot access each other (nvidia-smi topo -p2p r): then copy less, or while kernels run."
effort = "line"
estimate = "High: the idle time of the GPUs in which such copies are in progress. A direct copy takes a part of it."
links = ["CUDA C++ Programming Guide, Peer-to-Peer Memory Access"]
report = "copies"
when = "SELECT 1 FROM step_budget WHERE host = 'staged copy' LIMIT 1"

[fix]
any = "Call cudaDeviceEnablePeerAccess once for each GPU and each of its peers, before the first copy."
cupy = "Call cupy.cuda.runtime.deviceEnablePeerAccess(peer, 0) once on each GPU, before the first copy."

[params]
min_share = [0.01, "Share of the wall time that these copies must take (a hundredth)"]
*/
WITH staged_times AS (
    SELECT sum(time_ns)::DOUBLE AS idle_ns FROM step_budget WHERE host = 'staged copy'
),
copies AS (
    SELECT count(*)::DOUBLE / 2 AS copies, avg(c.size_bytes) AS mean_bytes
    FROM (FROM memcpys WHERE copy_kind = 'staged P2P' AND size_bytes > 1048576) AS c
    ASOF JOIN _steady_windows AS s ON s.start_ns <= c.start_ns
    WHERE c.start_ns < s.end_ns
),
gpus AS (
    SELECT count(DISTINCT gpu_id) AS gpus FROM step_budget
)
SELECT
    i.idle_ns / t.units AS recoverable_ns,
    100 * i.idle_ns / (t.wall_ns * t.units) AS wall_pct,
    NULL AS place,
    c.copies * g.gpus / t.units AS copies,
    c.mean_bytes,
    i.idle_ns / t.units AS idle_ns,
    t.wall_ns
FROM staged_times AS i, copies AS c, gpus AS g, _step_totals AS t
WHERE i.idle_ns >= $min_share * t.wall_ns * t.units AND c.copies > 0
