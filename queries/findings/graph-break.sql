/*
code = "NSI111"
title = "The host reads a flag back before it goes on"
family = "readback"
explains = ["late-host", "start", "wait", "copy", "fusion", "host-input", "host-stage"]
blocks = ["late-host"]
meaning = """
A copy of one byte to the host, with a wait, is a branch of the program that depends on data on the GPU. The GPU
is idle until the host has decided and launched again. A CUDA graph cannot contain it."""
evidence = [
    """{reads:copy|copies} of 1 byte to the host {per}, after {launches_each:launch|launches} on
    average""",
    "the GPU is busy for {busy_ns} of {wall_ns} {per}",
    "the kernel before the copy is mostly {kernel}",
    "{?is_backward}the thread of the backward pass reads them",
    "{compiled_pct} of the kernel time is in kernels that a compiler made: each copy divides a compiled graph",
]
skip_if = "The branch avoids more work than the wait costs."
effort = "function"
estimate = "High: the idle time of the GPU around the read-backs, at most that of the median step. Low: 40% of it."
links = ["PyTorch documentation, torch.compile: Graph breaks"]
report = "syncs"
when = "SELECT 1 FROM memcpys WHERE copy_kind = 'D2H' AND size_bytes = 1 LIMIT 1"

[fix.loop]
any = "Check the condition of the loop every 10 to 50 iterations, or run a fixed number of iterations."
jax = """
The flag is the condition of jax.lax.while_loop: check it every 10 to 50 iterations, with that many in its body (a
Python loop, or jax.lax.fori_loop), or run a fixed number with jax.lax.fori_loop or jax.lax.scan."""

[fix.tokens]
any = """
If the flag says whether all sequences have ended, test it every 8 to 16 tokens, and cut off what was generated after
the end. Another branch: decide on the GPU."""
pytorch = """
If the flag says whether all sequences have ended, as in generate() of transformers, write the loop over tokens
yourself, test it every 8 to 16 tokens, and cut off what was generated after the end. Another branch: torch.where."""

[fix.branch]
any = "Decide on the GPU: compute both sides and select, or pass the flag to the next kernel as a predicate."
pytorch = """
Replace a Python if that chooses between values by torch.where, leave out one that only skips work on empty tensors, or
move the check out of the step: an assertion, isnan().any(), that of torch.distributions (validate_args=False)."""
inductor = """
Replace the Python if on a tensor by torch.where or torch.cond, check with fullgraph=True that no graph break is
left, and then compile with mode="reduce-overhead"."""
jax = "Replace the Python branch by jax.lax.cond or jnp.where inside the jitted step."
cupy = "Replace the Python if on an array by cupy.where."
cuda = "Decide in the next kernel, or use conditional nodes of CUDA graphs (CUDA 12.4)."

[fix.backward]
any = "Check all gradients once per step, instead of after each operation of the backward pass."
pytorch = """
Switch off torch.autograd.set_detect_anomaly, which reads a flag back after each operation of the backward pass; remove
hooks that read gradients, or check all gradients once per step."""

[params]
min_choices = [0.9, "Choices of a token for each read-back from which a program generates tokens (0.9: one for each)"]
dense = [20, "With more launches than this between two read-backs, only the idle time near them is counted"]
*/
-- JAX polls for the end of a copy.
WITH flags AS (
    SELECT process_id, thread_id, device_id, start_ns, copy_end_ns FROM waits WHERE copy_kind = 'D2H' AND copy_bytes = 1
    UNION ALL
    SELECT process_id, NULL, device_id, start_ns, end_ns FROM memcpys
    WHERE copy_kind = 'D2H' AND size_bytes = 1 AND EXISTS (FROM frameworks WHERE framework = 'jax' AND is_program)
        AND NOT EXISTS (FROM waits WHERE copy_kind = 'D2H' AND copy_bytes = 1)
),
reads AS (
    SELECT w.* FROM flags AS w
    ASOF JOIN _steady_windows AS s ON s.process_id = w.process_id AND s.host_start_ns <= w.start_ns
    WHERE w.start_ns < s.host_end_ns
),
-- The first reads stand for all of them.
first_reads AS MATERIALIZED (FROM reads ORDER BY start_ns LIMIT 200),
kernels_before AS (
    SELECT kernel_base_name(mode(n.name)) AS kernel
    FROM first_reads AS r
    ASOF JOIN (
        SELECT process_id, start_ns, name_id FROM kernel_events
        WHERE start_ns <= (SELECT max(copy_end_ns) FROM first_reads)
    ) AS k ON k.process_id = r.process_id AND k.start_ns <= r.copy_end_ns
    JOIN kernel_names AS n USING (name_id)
),
-- PyTorch runs the backward pass in a thread of its own.
backward_reads AS (
    SELECT bool_and(thread_id <> process_id AND thread_id IN (
        SELECT l.thread_id FROM launches AS l JOIN kernel_names AS n USING (name_id)
        WHERE l.start_ns <= (SELECT max(copy_end_ns) FROM first_reads) AND regexp_matches(n.name, '(?i)backward|_grad_')
    )) AS is_backward,
    bool_and(thread_id IS NOT NULL) AND EXISTS (FROM frameworks WHERE framework = 'jax' AND is_program) AS is_in_jax
    FROM first_reads
),
-- XLA marks its operations: the copies of a while loop lie within the range of that loop. Without the ranges, its call
-- for the copy shows it: it waits for the stream, whereas the host polls for what Python reads.
loop_reads AS (
    SELECT count(*) AS loop_reads
    FROM (SELECT process_id, correlation_id FROM memcpys WHERE copy_kind = 'D2H' AND size_bytes = 1 LIMIT 200) AS m
    JOIN api_calls AS a USING (process_id, correlation_id)
    WHERE EXISTS (
        FROM nvtx_ranges AS r
        WHERE r.process_id = a.process_id AND r.thread_id = a.thread_id AND r.name LIKE 'Thunk:#%hlo_op=while%'
            AND a.start_ns BETWEEN r.start_ns AND r.end_ns
    ) OR (SELECT is_in_jax FROM backward_reads) AND NOT EXISTS (FROM nvtx_ranges WHERE starts_with(name, 'Thunk:#'))
),
kernel_totals AS (
    SELECT sum(kernel_time_pct) FILTER (kernel_provenance(name) = 'Inductor') AS compiled_pct,
        sum(calls) FILTER (regexp_matches(name, '(?i)argmax|multinomial')) AS choices FROM _steady_shapes
),
-- The read-backs are in every step, so what only some steps have is not theirs.
typical_step AS (
    SELECT median(gpu_idle_ns) / any_value(tokens_per_step) AS idle_ns FROM steps, step_method WHERE phase = 'steady'
)
SELECT
    least(t.idle_ns, m.idle_ns) * least(1, $dense * r.reads / t.units / t.launch_calls) AS recoverable_ns,
    0.4 * recoverable_ns AS saving_low_ns,
    100 * recoverable_ns / t.wall_ns AS wall_pct,
    NULL AS place, r.reads / t.units AS reads, t.launch_calls * t.units / r.reads AS launches_each,
    t.busy_ns, t.wall_ns, k.kernel, b.is_backward,
    CASE WHEN b.is_backward THEN 'backward' WHEN l.loop_reads > 0 THEN 'loop'
        WHEN c.choices >= $min_choices * r.reads THEN 'tokens' ELSE 'branch' END AS cure_case,
    CASE WHEN c.compiled_pct >= 10 THEN c.compiled_pct END AS compiled_pct
FROM kernels_before AS k, backward_reads AS b, loop_reads AS l, kernel_totals AS c, typical_step AS m,
    _step_totals AS t, (SELECT count(*)::DOUBLE AS reads FROM reads) AS r
WHERE t.has_steps AND r.reads >= 0.5 * t.units AND t.launch_calls > 0
