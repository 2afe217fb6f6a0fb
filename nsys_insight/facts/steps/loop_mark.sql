-- The operation that an iteration of a loop begins with, and whether the iteration ends with a copy to the host.
WITH RECURSIVE operations_of_loops AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY loop ORDER BY position) AS turn,
        row_number() OVER (PARTITION BY loop ORDER BY position DESC) AS turn_from_end
    FROM loop_operations
    WHERE kind <> 'wait'
),
-- The first operation of an inner loop stands for it.
first_operations AS (
    SELECT kind, label, name_id, inner_loop FROM operations_of_loops WHERE loop = $loop AND turn = 1
    UNION ALL
    SELECT o.kind, o.label, o.name_id, o.inner_loop
    FROM first_operations AS f
    JOIN operations_of_loops AS o ON o.loop = f.inner_loop AND o.turn = 1
)
SELECT
    coalesce(
        CASE WHEN f.kind = 'graph' THEN 'CUDA graph' END,
        (SELECT kernel_base_name(name) FROM kernel_names WHERE name_id = f.name_id),
        f.label
    ) AS first_name,
    (SELECT label = 'D2H copy' FROM operations_of_loops WHERE loop = $loop AND turn_from_end = 1) AS ends_with_copy
FROM first_operations AS f
WHERE f.inner_loop IS NULL
