/*
code = "NSI903"
title = "CUDA API calls failed"
family = "failed"
severity = "critical"
meaning = """
A failed call, or the kernel whose error it returns, did not do its work, so these figures can describe a broken run."""
evidence = [
    "{failures}", "{more_calls:more failed call}",
    "the first failed launch takes {first_ns}",
    "after the last of them, {later_launches:launch call} succeeded: the program went on",
]
skip_if = "The program expects it, such as an allocation that is retried with a smaller size."
effort = "function"
links = ["CUDA Runtime API, cudaError_t", "Compute Sanitizer User Manual"]
report = '''
sql "SELECT name, return_value, count(*) AS calls FROM api_calls WHERE return_value <> 0 GROUP BY ALL ORDER BY ALL"
'''
when = "SELECT 1 FROM api_calls WHERE return_value <> 0 LIMIT 1"

[items]
failures = ["{name}: {failed_calls} of {calls:call}", ["error {return_value} ({reason})", "error {return_value}"]]

[params]
min_later_launches = [10,
    "Launches after the last failed allocation from which the program went on (10: more than an error path makes)"]

[fix.memory]
any = "Fix this first: lower the peak of the memory in use, and check that the program handles the failed allocation."
pytorch = """
Lower the peak of the memory in use: a smaller batch, torch.utils.checkpoint; if it is fragmented, set
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."""
jax = """
Lower the peak of the memory in use: a smaller batch, jax.checkpoint, donate_argnums; if another process needs part of
the memory, set XLA_PYTHON_CLIENT_MEM_FRACTION."""

[fix.retried]
any = """
The program asks for less, or does without it: lower the peak of the memory in use if what it does instead is
slower."""

[fix.build]
any = """
Fix this first: compile the program for this GPU (nvcc -arch=native, or -gencode for its compute capability), or
install a build of it that includes this GPU."""
pytorch = """
Fix this first: install a build for this GPU (torch.cuda.get_arch_list() names what the build includes), and compile
extensions with TORCH_CUDA_ARCH_LIST."""

[fix.driver]
any = """
Fix this first: compile the program for this GPU (nvcc -arch=native), which needs no PTX compiler at run time; or update
the driver."""

[fix.resources]
any = """
Fix this first: launch fewer threads per block, or limit the registers per thread (__launch_bounds__, -maxrregcount):
the block needs more than a multiprocessor has."""

[fix.shape]
any = """
Fix this first: check the grid and the block: at most 1024 threads per block, no dimension of 0; more than 48 KiB of
dynamic shared memory needs cudaFuncSetAttribute()."""

[fix.cooperative]
any = """
Fix this first: launch fewer blocks: those of a cooperative launch must all run at once
(cudaOccupancyMaxActiveBlocksPerMultiprocessor)."""

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
reasons(return_value, reason, cure) AS (
    VALUES
    (1, 'invalid value', NULL), (2, 'out of memory', NULL), (9, 'invalid configuration', 'shape'),
    (98, 'invalid device function', 'build'), (209, 'no kernel image for the device', 'build'),
    (218, 'invalid PTX', 'build'), (221, 'the PTX compiler was not found', 'driver'),
    (222, 'the driver is older than the PTX compiler', 'driver'), (700, 'illegal address', NULL),
    (701, 'too many resources requested', 'resources'), (702, 'timeout', NULL), (710, 'assertion in a kernel', NULL),
    (716, 'misaligned address', NULL), (719, 'a kernel failed', NULL),
    (720, 'cooperative launch of too many blocks', 'cooperative')
),
-- The error that most launches return. A launch that is rejected has a remedy of its own.
rejections AS (
    SELECT arg_max_null(cure, failed) AS cure
    FROM failed_calls JOIN reasons USING (return_value)
    WHERE api_group(name) IN ('launch', 'graph launch')
)
SELECT
    NULL AS recoverable_ns,
    NULL AS wall_pct,
    NULL AS place,
    -- Only if no other call failed.
    CASE WHEN bool_and(f.return_value = 2 AND api_group(f.name) = 'alloc') THEN max(r.launches) END AS later_launches,
    CASE WHEN later_launches > 0 THEN 'retried' END AS family,
    CASE WHEN later_launches > 0 THEN 'warning' END AS severity,
    CASE WHEN later_launches > 0 THEN 'retried'
        WHEN bool_and(f.return_value = 2) THEN 'memory'
        ELSE coalesce((FROM rejections), 'other')
    END AS cure_case,
    -- The first launch of a kernel loads its code. If it is long, all of its time was lost.
    (
        SELECT duration_ns::DOUBLE FROM outer_api_calls
        WHERE call_group = 'launch' AND return_value <> 0 AND name IN (SELECT name FROM failed_calls)
        QUALIFY row_number() OVER (ORDER BY start_ns) = 1 AND 10 * duration_ns >= (SELECT sum(duration_ns) FROM wall)
    ) AS first_ns,
    list(
        {
            'name': f.name, 'failed_calls': f.failed, 'calls': c.calls, 'return_value': f.return_value,
            'reason': n.reason
        }
        ORDER BY f.turn
    ) FILTER (f.turn <= 3) AS failures,
    sum(f.failed) FILTER (f.turn > 3) AS more_calls
FROM failed_calls AS f
JOIN all_calls AS c USING (name)
LEFT JOIN reasons AS n USING (return_value)
LEFT JOIN (FROM _survived_failures WHERE launches >= $min_later_launches) AS r ON true
HAVING count(*) > 0
