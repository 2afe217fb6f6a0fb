-- The summary of the ranks of a run, and the rank to diagnose: the late rank with the largest delay, or if none is late
-- the rank that waits least; in a pipeline, the stage that sets the pace where that costs more. No row if no ranks are
-- matched with each other.
WITH rank_totals AS (
    SELECT
        rank, sum(late_ns)::DOUBLE AS late_ns, sum(waiting_ns)::DOUBLE AS waiting_ns,
        sum(transfer_ns)::DOUBLE AS transfer_ns
    FROM rank_steps
    GROUP BY rank
),
delays AS (
    SELECT count(*) FILTER (late_ns > 0) AS late_steps, count(*) AS steps, sum(late_ns)::DOUBLE AS late_ns
    FROM (SELECT max(late_ns) AS late_ns FROM rank_steps GROUP BY step)
),
pace AS (
    SELECT p.* FROM _stage_pace AS p, delays AS d WHERE p.high_ns >= d.late_ns / d.steps
),
diagnosed_rank AS (
    SELECT
        t.*, y.main_steps, y.steps_in_all, y.step_numbers, y.main_ns, y.minor_steps, y.minor_ns, r.trace,
        r.process_id, r.device_id, r.cause, r.busy_ratio, r.host, r.place, r.stretch_before
    FROM rank_totals AS t JOIN ranks AS r USING (rank) LEFT JOIN _lateness AS y USING (rank)
    ORDER BY t.rank = (SELECT rank FROM pace) DESC NULLS LAST, t.late_ns DESC, t.waiting_ns, t.rank
    LIMIT 1
),
late_ranks AS (
    SELECT list(rank ORDER BY rank) AS late_ranks FROM _lateness
)
SELECT
    r.verdict, r.ranks, r.unit, r.compared_with = 'itself' AS is_unusual, c.rank, c.trace,
    -- What distinguishes the rank from the others in its trace.
    CASE WHEN (SELECT count(DISTINCT process_id) FROM ranks WHERE trace = c.trace) > 1 THEN c.process_id END AS process,
    CASE
        WHEN (SELECT count(*) FROM ranks WHERE trace = c.trace AND process_id = c.process_id) > 1 THEN c.device_id
    END AS device,
    coalesce(c.waiting_ns / nullif(c.waiting_ns + c.transfer_ns, 0), 0) AS waiting_share,
    p.rank AS pace_rank_id, p.busy_ns AS pace_busy_ns, p.step_ns AS pace_step_ns, p.ratio AS pace_ratio,
    l.late_ranks, c.main_steps, c.steps_in_all, c.step_numbers, c.main_ns, c.minor_steps, c.minor_ns,
    CASE c.cause WHEN 'host' THEN coalesce(c.host, 'its host') END AS late_host,
    CASE c.cause WHEN 'host' THEN c.place END AS place,
    CASE WHEN c.cause = 'host' AND c.place IS NULL THEN c.stretch_before END AS stretch_before,
    CASE c.cause WHEN 'gpu' THEN c.busy_ratio END AS late_busy_ratio,
    o.waiting_ns AS others_wait_ns, h.is_all_hosts, h.some_hosts, h.min_host_ns, h.max_host_ns, h.step_ns,
    r.verdict = 'moving' AS is_moving, d.late_steps, d.steps, d.late_ns / nullif(d.late_steps, 0) AS mean_late_ns,
    r.stages IS NULL AS has_no_stages
FROM rank_run AS r
CROSS JOIN diagnosed_rank AS c
CROSS JOIN late_ranks AS l
CROSS JOIN delays AS d
LEFT JOIN _others_wait AS o ON true
LEFT JOIN _host_pace AS h ON true
LEFT JOIN pace AS p ON true
WHERE r.verdict IS NOT NULL
