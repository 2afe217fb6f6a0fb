/*
description = """\
Whether the program waits for events: the thread that launches sleeps in epoll, poll or the like for most
    of the CPU work that the GPU waits for, such as a server without requests. One row if so, else none."""
[columns]
wait_call = "The call with the most of this time"
work_pct = "Share of the CPU work in such calls"
*/
-- A condition is also what a thread waits on for others of its program. That counts only if samples show that the
-- CPU hardly computes.
WITH sleeping_program AS (
    SELECT samples FROM _sample_period
    WHERE samples * period_ns < 0.1::DOUBLE * (SELECT sum(duration_ns) FROM wall)
)
SELECT substr(max_by(what, work_pct), 10) AS wait_call, sum(work_pct) AS work_pct
FROM _cpu_work
WHERE counted_by = 'activity' AND (
    regexp_full_match(what, 'OS call: (epoll_p?wait2?|p?poll|p?select|accept4?|recv(from|msg)?)')
    OR regexp_full_match(what, 'OS call: (pthread_cond_(timed|clock)?wait|sem_(timed|clock)?wait)')
        AND EXISTS (FROM sleeping_program)
)
HAVING sum(work_pct) > 50;
