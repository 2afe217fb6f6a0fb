/*
code = "NSI903"
title = "CUDA API calls failed"
family = "failed"
severity = "critical"
meaning = """
A failed call, or the kernel whose error it returns, did not do its work, so these figures can describe a broken run."""
evidence = ["{failures}", "{more_calls:more failed call}"]
skip_if = """
The program expects it, such as an allocation that is retried with a smaller size."""
effort = "function"
links = ["CUDA Runtime API, cudaError_t", "Compute Sanitizer User Manual"]
report = '''
sql "SELECT name, return_value, count(*) AS calls FROM api_calls WHERE return_value <> 0 GROUP BY ALL ORDER BY ALL"
'''

[items]
failures = ["{name}: {failed_calls} of {calls:call}", ["error {return_value} ({reason})", "error {return_value}"]]

[fix.memory]
any = "Fix this first: lower the peak of the memory in use, and check that the program handles the failed allocation."
pytorch = """
Lower the peak of the memory in use: a smaller batch, torch.utils.checkpoint; if it is fragmented, set
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."""
jax = """
Lower the peak of the memory in use: a smaller batch, jax.checkpoint, donate_argnums; if another process needs part of
the memory, set XLA_PYTHON_CLIENT_MEM_FRACTION."""

[fix.other]
any = "Fix this first: run under compute-sanitizer, which reports failing calls and the kernel at fault."
cuda = """
Fix this first: check the return value of each call, and cudaGetLastError after each launch; compute-sanitizer names
the kernel."""
pytorch = "Fix this first: run with CUDA_LAUNCH_BLOCKING=1 to get the line that fails, or under compute-sanitizer."
*/
-- Not a failure: a query of unfinished work (600), a request for something that exists already, and calls while CUDA
-- shuts down (4, 709).
WITH failed_calls AS MATERIALIZED (
    SELECT
        name, return_value, count(*) AS failed,
        row_number() OVER (ORDER BY count(*) DESC, name, return_value) AS turn
    FROM outer_api_calls
    WHERE return_value <> 0 AND (
        call_group IN ('launch', 'graph launch', 'copy', 'memset', 'alloc')
            AND return_value NOT IN (4, 600, 704, 709, 712)
        -- The next call that waits for a kernel returns the kernel's error.
        OR call_group = 'sync' AND return_value IN (700, 702, 710, 714, 715, 716, 717, 718, 719)
    )
    GROUP BY name, return_value
),
all_calls AS (
    SELECT name, count(*) AS calls FROM outer_api_calls WHERE name IN (SELECT name FROM failed_calls) GROUP BY name
),
reasons(return_value, reason) AS (
    VALUES
    (1, 'invalid value'), (2, 'out of memory'), (9, 'invalid configuration'), (98, 'invalid device function'),
    (209, 'no kernel image for the device'), (222, 'the driver is older than the PTX compiler'),
    (700, 'illegal address'), (701, 'too many resources requested'), (702, 'timeout'),
    (710, 'assertion in a kernel'), (716, 'misaligned address'), (719, 'a kernel failed')
)
SELECT
    NULL AS recoverable_ns,
    NULL AS wall_pct,
    NULL AS place,
    CASE WHEN bool_and(f.return_value = 2) THEN 'memory' ELSE 'other' END AS cure_case,
    list(
        {
            'name': f.name, 'failed_calls': f.failed, 'calls': c.calls, 'return_value': f.return_value,
            'reason': r.reason
        }
        ORDER BY f.turn
    ) FILTER (f.turn <= 3) AS failures,
    sum(f.failed) FILTER (f.turn > 3) AS more_calls
FROM failed_calls AS f
JOIN all_calls AS c USING (name)
LEFT JOIN reasons AS r USING (return_value)
HAVING count(*) > 0
