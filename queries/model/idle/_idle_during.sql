-- How long the GPUs were idle during `calls` (code, place, start_ns, end_ns), added up by code and place. What may
-- overlap is compared time bucket by time bucket: there are few calls, and millions of gaps.
CREATE MACRO _idle_during(calls) AS TABLE
WITH line AS MATERIALIZED (
    SELECT
        greatest(16384, (max(end_ns) - min(start_ns)) // greatest(200000, 16 * count(*))) AS slot_ns,
        min(start_ns) AS from_ns, max(end_ns) AS until_ns
    FROM query_table(calls) HAVING count(*) > 0
),
slotted AS MATERIALIZED (
    SELECT
        code, place, start_ns, end_ns, start_ns // slot_ns AS first_slot,
        unnest(range(start_ns // slot_ns, end_ns // slot_ns + 1)) AS slot
    FROM query_table(calls) CROSS JOIN line
),
-- To DuckDB a list is one row; else it would take these few for many, and hash all gaps.
slots AS MATERIALIZED (
    SELECT unnest(list(DISTINCT slot)) AS slot FROM slotted
),
gpus AS MATERIALIZED (
    SELECT unnest(list(DISTINCT gpu_id)) AS gpu_id FROM step_budget
),
gaps AS (
    SELECT
        start_ns, end_ns, greatest(start_ns, from_ns) // slot_ns AS first_slot,
        least(end_ns, until_ns) // slot_ns AS last_slot
    FROM gpu_gaps CROSS JOIN line
    WHERE gpu_id IN (FROM gpus) AND start_ns < until_ns AND end_ns > from_ns
),
near AS MATERIALIZED (
    FROM gaps WHERE first_slot IN (FROM slots) OR last_slot IN (FROM slots) OR last_slot > first_slot + 1
)
SELECT n.code, n.place, sum(least(g.end_ns, n.end_ns) - greatest(g.start_ns, n.start_ns))::BIGINT AS idle_ns
FROM (SELECT *, unnest(range(first_slot, last_slot + 1)) AS slot FROM near) AS g
JOIN slotted AS n USING (slot)
WHERE slot = greatest(g.first_slot, n.first_slot) AND g.start_ns < n.end_ns AND g.end_ns > n.start_ns
GROUP BY n.code, n.place;
