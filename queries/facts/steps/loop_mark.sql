-- The operation that an iteration of a loop begins with, and whether the iteration ends with a copy to the host.
WITH gpu_operations AS (
    FROM loop_operations
    WHERE loop = $loop AND kind <> 'wait'
),
-- The first operation of an inner loop stands for it.
first_operation AS (
    SELECT o.kind, o.label, o.name_id
    FROM loop_operations AS o
    WHERE starts_with(o.loop, $loop) AND o.kind NOT IN ('wait', 'loop')
        AND o.host_start_ns >= (SELECT min(host_start_ns) FROM gpu_operations)
    ORDER BY o.host_start_ns, o.position
    LIMIT 1
)
SELECT
    coalesce(
        CASE WHEN f.kind = 'graph' THEN 'CUDA graph' END,
        (SELECT name FROM kernel_names WHERE name_id = f.name_id),
        f.label
    ) AS first_name,
    (SELECT arg_max(label, position) = 'D2H copy' FROM gpu_operations) AS ends_with_copy
FROM first_operation AS f
