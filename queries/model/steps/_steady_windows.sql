/*
description = "One row per steady step; one row that contains all times where there are none."
stored = true
[columns]
step = "Number of the step; NULL in the row for all times"
process_id = "The process of the steps; NULL in the row for all times, so a join on the process leaves that row out"
host_start_ns = "From this time, what the host launches belongs to the step"
host_end_ns = "Until this time"
start_ns = "Start of the step on the GPU"
end_ns = "End of the step on the GPU"
tokens = "Tokens that a step makes; 1 in the row for all times"
*/
-- All steps are of one process. 2^61 ns is later than any time of a trace, and differences of such times do not
-- overflow. A table because many queries read it: a view would be planned again in each of them.
SELECT
    s.step, s.process_id, s.host_start_ns, s.host_end_ns, s.start_ns, s.end_ns, coalesce(m.tokens_per_step, 1) AS tokens
FROM steps AS s LEFT JOIN step_method AS m ON true
WHERE s.phase = 'steady'
UNION ALL
SELECT NULL, NULL, -limit_ns, limit_ns, -limit_ns, limit_ns, 1
FROM (SELECT 2305843009213693952 AS limit_ns)
WHERE NOT EXISTS (FROM steps WHERE phase = 'steady');
