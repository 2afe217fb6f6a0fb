/*
description = "How much of the CPU work in steady steps touches managed memory, whose pages move meanwhile."
[columns]
managed_share = "Time until pages of managed memory were moved, as a fraction of the CPU work; 0 without CPU work"
*/
SELECT
    coalesce(coalesce(sum(time_ns) FILTER (host = 'managed memory'), 0)::DOUBLE / sum(time_ns), 0) AS managed_share
FROM step_budget
WHERE part = 'launch' AND host IN ('CPU work', 'managed memory');
