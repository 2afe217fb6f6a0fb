/*
title = "Memory: the most held at once, and who holds it"
topic = "memory"
place = 4
question = "How much memory is in use at most, what holds it then, and what is never freed?"
examples = ["", "--by range", "--by step"]
main = ["at_peak_bytes", "peak_bytes", "unfreed_bytes", "unfreed", "blocks", "memory", "name"]
description = """
Groups the blocks of memory that were allocated, by kind of memory, GPU and process. The peak of a group is the
largest sum of the sizes of its blocks that existed at the same time. at_peak_bytes is what a row's blocks held when
all blocks of this kind, GPU and process together held most. The rows of one kind, GPU and process add up to that
peak. With --by range, the name is the NVTX range that is open on the allocating thread, innermost first; # stands for
numbers. With --by step, blocks belong to the step in which they were allocated."""
reading = """
The first row holds most of the peak: make its blocks smaller or free them earlier. unfreed_bytes that grow with the
number of steps are a leak (--by step: each step leaves some). A framework's own pool allocates in large blocks: what
it holds is not what its tensors use."""
empty = """\
No allocations with sizes are recorded in this scope; capture with: nsys profile --cuda-memory-usage=true"""

[params.by]
default = "call"
choices = ["call", "range", "step", "caller"]
help = "What one row stands for: the function, NVTX range, step or place in the backtrace that allocates"

[columns]
name = "The function that allocates, or what --by selects"
memory = "device, managed, or pinned memory of the host"
at_peak_bytes = "What its blocks held when all blocks of this kind, GPU and process held most"
peak_bytes = "The most that its own blocks held at once"
allocated_bytes = "Sum of the sizes of its blocks"
unfreed_bytes = "Sizes of its blocks whose end is not recorded"
unfreed = "Blocks that were not freed"
blocks = "How many were allocated"
largest_bytes = "The largest"
peak_start_ns = "When all blocks of this kind, GPU and process first held most"
device_id = "CUDA device number within the process"
process_id = "Operating system's process id"

[notes]
part.text = "blocks that were allocated before this part of the trace are not counted"
part.query = "FROM scope WHERE coalesce(nvtx, from_ns::VARCHAR, to_ns::VARCHAR) IS NOT NULL AND EXISTS (FROM answer)"
*/
WITH all_blocks AS MATERIALIZED (
    SELECT *, row_number() OVER (ORDER BY start_ns, process_id, address) AS block FROM memory_blocks
),
names AS (
    SELECT block, coalesce(function_name, '(no call)') AS name FROM all_blocks WHERE $by = 'call'
    UNION ALL
    SELECT b.block, coalesce(folded_name(n.path), '(no range)')
    FROM all_blocks AS b
    ASOF LEFT JOIN nvtx_places AS p
        ON p.process_id = b.process_id AND p.thread_id = b.thread_id AND p.start_ns <= b.start_ns
    LEFT JOIN nvtx_nesting AS n USING (range_id)
    WHERE $by = 'range'
    UNION ALL
    SELECT b.block, CASE WHEN b.start_ns < s.host_end_ns THEN 'step ' || s.step ELSE '(no step)' END
    FROM all_blocks AS b
    ASOF LEFT JOIN (FROM steps WHERE step IS NOT NULL) AS s
        ON s.process_id = b.process_id AND s.host_start_ns <= b.start_ns
    WHERE $by = 'step'
    UNION ALL
    SELECT b.block, coalesce(c.name, '(no backtrace)')
    FROM all_blocks AS b LEFT JOIN _sync_callers AS c USING (process_id, correlation_id)
    WHERE $by = 'caller'
),
blocks AS MATERIALIZED (FROM all_blocks JOIN names USING (block)),
-- What the blocks of a row hold after each allocation and each free. At one instant, frees come first.
changes AS (
    SELECT process_id, device_id, memory, name, start_ns AS at_ns, size_bytes AS change_bytes FROM blocks
    UNION ALL
    SELECT process_id, device_id, memory, name, end_ns, -size_bytes FROM blocks WHERE end_ns IS NOT NULL
),
own_bytes AS (
    SELECT
        process_id, device_id, memory, name,
        sum(change_bytes) OVER (
            PARTITION BY process_id, device_id, memory, name ORDER BY at_ns, change_bytes ROWS UNBOUNDED PRECEDING
        ) AS held_bytes
    FROM changes
),
peaks AS (
    SELECT process_id, device_id, memory, arg_max(at_ns, (held_bytes, -at_ns)) AS peak_start_ns
    FROM _held_memory GROUP BY ALL
),
own_peaks AS (
    SELECT process_id, device_id, memory, name, max(held_bytes)::BIGINT AS peak_bytes FROM own_bytes GROUP BY ALL
)
SELECT
    b.name, b.memory,
    coalesce(
        sum(b.size_bytes) FILTER (b.start_ns <= p.peak_start_ns AND coalesce(b.end_ns > p.peak_start_ns, true)), 0
    )::BIGINT AS at_peak_bytes,
    any_value(o.peak_bytes) AS peak_bytes, sum(b.size_bytes)::BIGINT AS allocated_bytes,
    coalesce(sum(b.size_bytes) FILTER (b.end_ns IS NULL), 0)::BIGINT AS unfreed_bytes,
    count(*) FILTER (b.end_ns IS NULL) AS unfreed, count(*) AS blocks, max(b.size_bytes) AS largest_bytes,
    p.peak_start_ns, b.device_id, b.process_id
FROM blocks AS b
JOIN peaks AS p USING (process_id, device_id, memory)
JOIN own_peaks AS o USING (process_id, device_id, memory, name)
GROUP BY b.name, b.memory, p.peak_start_ns, b.device_id, b.process_id
ORDER BY
    CASE WHEN $by = 'step' THEN min(b.start_ns) END, at_peak_bytes DESC, peak_bytes DESC, b.memory, b.name,
    b.process_id, b.device_id
