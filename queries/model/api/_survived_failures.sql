/*
description = """Failed allocations after which the program went on launching: a framework's allocator asks for less,
    and a library takes an algorithm that needs less."""
[columns]
launches = "Launch calls that succeeded after the last of them, in the same process"
*/
WITH last_failures AS (
    SELECT process_id, max(start_ns) AS start_ns
    FROM outer_api_calls WHERE return_value = 2 AND call_group = 'alloc'
    GROUP BY process_id
)
SELECT count(*) AS launches
FROM outer_api_calls AS c
JOIN last_failures AS f ON f.process_id = c.process_id AND f.start_ns < c.start_ns
WHERE c.call_group IN ('launch', 'graph launch') AND c.return_value = 0
HAVING count(*) > 0;
