/*
code = "NSI105"
title = "GPU idle during CPU work"
family = "launch"
is_host_work = true
symptom = "late-host"
meaning = """
The host does something other than calling CUDA for longer than launches take, and the GPU has nothing queued."""
evidence = [
    [
        "the GPU is idle for {idle_ns} while the CPU is outside CUDA calls: {known_work}",
        "the GPU is idle for {idle_ns} while the CPU is outside CUDA calls",
    ],
    "{mpi_ns} of it in MPI calls, most in {mpi_name}",
    "{managed_ns} of it while the host touches managed memory, whose pages migrate",
    "it waits for {short_gaps:operation} {per}, for {short_gap_ns} each (median)",
    "{?run_in_steps}the program runs functions on the host (cudaLaunchHostFunc) in each step, for which it may wait",
    [
        "the longest gap, {longest_gap_ns}, is between {before} and {after} ({host})",
        "the longest gap, {longest_gap_ns}, is between {before} and {after}",
    ],
]
skip_if = "The GPU's next work needs its result; then optimize the CPU work itself."
effort = "function"
estimate = "The idle time of the GPU in which no thread of the process is in a CUDA call."
links = ["Nsight Systems User Guide, CPU sampling: --sample=process-tree shows the functions"]
report = "host"
when = "SELECT 1 FROM classify_report WHERE part = 'launch' AND see = 'gaps'"

[items]
known_work = [
    [
        "{work_ns} in {os_call}() in {range}", "{work_ns} in {os_call}()", "{work_ns} {activity} in {range}",
        "{work_ns} {activity}",
    ],
]

[fix.cpu]
any = "Do that work in another thread, or after the next step is launched, so that the GPU has work meanwhile."
pytorch = """
Do that work in another process or thread (DataLoader with num_workers and prefetch_factor for input), or after the
next step is launched."""
tensorrt = """
Enqueue the next inference (enqueueV3) before the host handles the results of this one, and prepare input in another
thread."""
openacc = "Launch the next step asynchronously (async clause) before the host does that work."
openmp = "Launch the next step asynchronously (target nowait) before the host does that work."
jax = "Dispatch the next step before the host handles the results of this one, and prepare input in another thread."

[fix.spread]
any = """
The host issues operations one by one, more slowly than the GPU runs them: issue fewer. Fuse or batch them, or launch
the step as a CUDA graph."""
pytorch = """
Python issues operations one by one, more slowly than the GPU runs them: issue fewer. Compile the step
(torch.compile(model, mode="reduce-overhead")) or capture it with torch.cuda.graph; give inputs, or networks of one
shape, that run one after another a batch dimension."""
inductor = """
Python issues operations one by one, more slowly than the GPU runs them: compile the other operations of the step with
it, and launch it as a CUDA graph (mode="reduce-overhead")."""
jax = """
Python issues operations one by one, more slowly than the GPU runs them: put the whole step under one jax.jit, with its
loops (jax.vmap, jax.lax.scan) and updates of arrays (x.at[i].set copies all of x outside of it)."""
cupy = """
Python issues operations one by one, more slowly than the GPU runs them: issue fewer. Fuse them (cupy.fuse,
ElementwiseKernel), work on whole arrays instead of parts, or capture the step on a stream (stream.begin_capture())."""

[fix.no_steps]
any = """
See what the host does in the longest gaps; start it earlier or in another thread if the GPU's next work can begin
without its result."""

[fix.sleep]
any = "Remove the sleep, or wait for the event itself instead of for a time."

[fix.events]
any = """
The thread that launches sleeps until something arrives (a request, a message, data). If nothing arrived, nothing is to
be gained: measure under load. Else find out what sends late."""

[fix.threads]
any = """
The host waits for other threads: give them less to do, or let them work while the GPU has work, on what it needs
later."""

[fix.off]
any = """
The thread that launches is off the CPU: it sleeps, or waits for a device, a file or another thread (-t osrt records the
call). Wait for it while the GPU has work; if it is the rate of the input, nothing is to be gained."""

[fix.functions]
any = """
Wait for an event (cudaEventSynchronize) in another thread instead of for a function of cudaLaunchHostFunc, which begins
about 50 µs later. And launch the next step before the host handles the results of this one."""

[fix.mpi]
any = """
Let messages pass while the GPU works: start them (MPI_Isend, MPI_Irecv), launch what does not need them, then wait for
them. See mpi for the calls, and ranks, with the traces of all ranks, for a rank that is late."""

[fix.managed]
any = """
Let a kernel set up what the GPU works on, and a kernel reduce what the host looks at; or let the host do its part
while the GPU works on other data."""
openacc = "Set up the data in a parallel loop, and reduce what the host looks at in another one (reduction clause)."
openmp = "Set up the data in a target region, and reduce what the host looks at in another one (reduction clause)."
kokkos = "Set up the data with parallel_for, and reduce what the host looks at with parallel_reduce."

[params]
min_pct = [5.0, "Share of the CPU work from which a part of it is named"]
short_share = [0.8,
    """Share of the idle time in waits below 0.5 ms, from which the number of operations costs (Python takes tens of
    microseconds for one)"""]
min_gaps = [6, "Fewest such waits in a step (6: fewer may be what the program itself does between operations)"]
*/
WITH longest_gap AS (
    SELECT g.*
    FROM gaps_report AS g
    ASOF JOIN _steady_windows AS s ON s.start_ns <= g.start_ns
    WHERE g.start_ns < s.end_ns AND g.cause = 'launch'
        AND (g.host IN ('CPU work', 'managed memory') OR g.host SIMILAR TO '(OS|MPI): .*')
    ORDER BY g.duration_ns DESC, g.start_ns
    LIMIT 1
),
-- The largest known parts of the CPU work. In the report host, CPU work that follows a wait counts for the wait: then
-- these parts may add up to more than the CPU work that remains.
known_work AS (
    SELECT
        list({
            'work_ns': time_ns, 'os_call': CASE WHEN what LIKE 'OS call: %' THEN substr(what, 10) END,
            'activity': what, 'range': regexp_extract(nvtx_path, '[^/]*$')
        } ORDER BY time_ns DESC, what, nvtx_path) AS parts,
        sum(time_ns) AS known_ns
    FROM (
        SELECT nvtx_path, what, time_ns FROM _cpu_work
        WHERE counted_by = 'activity' AND is_known AND work_pct >= $min_pct
        ORDER BY time_ns DESC, what, nvtx_path
        LIMIT 3
    )
),
host_times AS (
    SELECT
        sum(recoverable_ns) AS recoverable_ns, sum(wall_pct) AS wall_pct,
        sum(recoverable_ns) FILTER (code = 'mpi_call') AS mpi_ns
    FROM host_report WHERE code IN ('cpu_work', 'mpi_call')
    HAVING count(*) > 0
)
SELECT
    h.recoverable_ns, h.wall_pct, g.nvtx_path AS place,
    CASE
        WHEN 2 * h.mpi_ns > h.recoverable_ns THEN 'mpi'
        WHEN 2 * w.managed_share > 1 THEN 'managed'
        WHEN EXISTS (FROM _event_waits) THEN 'events'
        WHEN f.run_in_steps THEN 'functions'
        WHEN 2 * k.parts[1].work_ns > h.recoverable_ns
            AND regexp_matches(k.parts[1].activity, '^(OS call: ((clock_)?nano|u)?sleep|sleeping)$') THEN 'sleep'
        WHEN 2 * k.parts[1].work_ns > h.recoverable_ns
            AND regexp_matches(k.parts[1].os_call, '^(pthread_(join|cond_\w*wait)|sem_\w*wait|futex)$') THEN 'threads'
        WHEN 2 * k.parts[1].work_ns > h.recoverable_ns AND k.parts[1].activity = 'off the CPU' THEN 'off'
        WHEN NOT EXISTS (FROM steps WHERE phase = 'steady') THEN 'no_steps'
        WHEN s.short_gaps IS NOT NULL THEN 'spread'
        ELSE 'cpu'
    END AS cure_case,
    CASE WHEN EXISTS (FROM _event_waits) THEN 'info' END AS severity, h.recoverable_ns AS idle_ns,
    CASE WHEN 2 * w.managed_share <= 1 AND k.known_ns <= 1.05 * h.recoverable_ns THEN k.parts END AS known_work,
    f.run_in_steps, h.mpi_ns, s.short_gaps, s.short_gap_ns,
    (FROM _mpi_work) AS mpi_name,
    CASE WHEN 2 * w.managed_share > 1 THEN w.managed_share * h.recoverable_ns END AS managed_ns,
    g.duration_ns AS longest_gap_ns,
    operation_text(g.before_name) AS before, operation_text(g.after_name) AS after,
    nullif(g.host, 'CPU work') AS host
FROM (host_times AS h CROSS JOIN _managed_work AS w CROSS JOIN _silent_waits AS f)
LEFT JOIN longest_gap AS g ON true
LEFT JOIN known_work AS k ON true
LEFT JOIN _late_waits AS s ON s.short_share >= $short_share AND s.short_gaps >= $min_gaps
WHERE EXISTS (FROM classify_report WHERE part = 'launch' AND see = 'gaps')
