/*
title = "The ranks wait for a slow one"
family = "communication"
overlaps = true
meaning = """
A collective ends when the last rank has come to it, so its kernel is shortest on the rank that comes last, and the others
spend the difference waiting."""
action = """
See what that rank does more: its share of the work, its clocks, its host (--process, --device)."""
caveat = """
The ranks send different amounts, or are connected differently."""
report = '''
sql "SELECT process_id, device_id, count(*) AS calls, sum(duration_ns)::BIGINT AS total_ns FROM kernels JOIN kernel_names USING (name_id) WHERE family = 'comm' GROUP BY ALL ORDER BY ALL"
'''

[params.least_pct]
default = 10.0
help = "By how much the communication of the ranks must differ, in % of the longest (10: more than the spread of one rank)"
*/
WITH ranks AS (
    SELECT k.process_id, k.device_id, count(*) AS calls, sum(k.duration_ns)::BIGINT AS comm_ns
    FROM kernel_events AS k
    WHERE k.name_id IN (SELECT name_id FROM kernel_names WHERE family = 'comm')
    GROUP BY ALL
),
spread AS (
    SELECT
        count(*) AS ranks, max(comm_ns) - min(comm_ns) AS waits_ns, max(comm_ns) AS longest_ns, min(comm_ns) AS shortest_ns, max(calls) AS calls,
        arg_min('process ' || process_id || ', device ' || device_id, (comm_ns, process_id, device_id)) AS slow_rank
    FROM ranks
    -- Other numbers of collectives are other groups.
    HAVING count(*) > 1 AND min(calls) = max(calls) AND max(comm_ns) > 0
),
per AS (
    SELECT sum(calls) / count(DISTINCT step) / any_value((SELECT tokens_per_step FROM step_method)) AS calls
    FROM step_kernels WHERE name_id IN (SELECT name_id FROM kernel_names WHERE family = 'comm')
)
SELECT
    s.waits_ns / s.calls * coalesce(p.calls, s.calls) AS recoverable_ns,
    100 * s.waits_ns / s.calls * coalesce(p.calls, s.calls) / w.time_ns AS wall_pct,
    s.slow_rank AS place,
    'its ' || s.calls || ' collectives take ' || time_text(s.shortest_ns) || ', on the other '
        || CASE s.ranks WHEN 2 THEN 'rank ' ELSE 'ranks up to ' END || time_text(s.longest_ns) AS evidence
FROM spread AS s, per AS p, (FROM classify_report WHERE part = 'wall') AS w
WHERE 100.0 * s.waits_ns >= $least_pct * s.longest_ns
