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
    SELECT t.*, y.text, r.trace, r.process_id, r.device_id, r.cause, r.busy_ratio, r.host, r.place,
        r.stretch_before
    FROM rank_totals AS t JOIN ranks AS r USING (rank) LEFT JOIN _lateness AS y USING (rank)
    ORDER BY t.rank = (SELECT rank FROM pace) DESC NULLS LAST, t.late_ns DESC, t.waiting_ns, t.rank
    LIMIT 1
),
late_ranks AS (
    SELECT count(*) AS ranks, ranks_text(list(rank ORDER BY rank)) AS names FROM _lateness
)
SELECT
    r.verdict, r.ranks, c.rank, c.trace,
    -- What distinguishes the rank from the others in its trace.
    CASE WHEN (SELECT count(DISTINCT process_id) FROM ranks WHERE trace = c.trace) > 1 THEN c.process_id END AS process,
    CASE
        WHEN (SELECT count(*) FROM ranks WHERE trace = c.trace AND process_id = c.process_id) > 1 THEN c.device_id
    END AS device,
    coalesce(c.waiting_ns / nullif(c.waiting_ns + c.transfer_ns, 0), 0) AS waiting_share,
    r.ranks || ' ranks: ' || CASE
        WHEN p.rank IS NOT NULL
            THEN 'the stages of a pipeline are uneven: rank ' || p.rank || ' is busy for ' || time_text(p.busy_ns)
                || ' of a ' || r.unit || ' of ' || time_text(p.step_ns) || ', ' || format('{:.2g}', p.ratio)
                || ' times as long as the others, which wait for it'
        WHEN r.verdict = 'late'
            THEN l.names || CASE l.ranks WHEN 1 THEN ' is' ELSE ' are' END || ' late in ' || c.text
                || CASE c.cause
                    WHEN 'host' THEN ': ' || coalesce(c.host, 'its host')
                        || coalesce(' in ' || c.place, ' before ' || c.stretch_before, '')
                    WHEN 'gpu' THEN CASE l.ranks WHEN 1 THEN ': its GPU is' ELSE ': their GPUs are' END
                        || ' busy ' || format('{:.2g}', c.busy_ratio) || ' times as long'
                    ELSE ''
                END || '; ' || (SELECT text FROM _others_wait)
        WHEN r.verdict = 'moving'
            THEN 'a different rank is late from step to step: in ' || d.late_steps || ' of ' || d.steps || ' '
                || r.unit || 's one is late, by ' || time_text(d.late_ns / d.late_steps) || ' on average'
        WHEN r.verdict = 'host'
            THEN 'no rank is late by itself: ' || (SELECT text FROM _host_pace) || ', so the cure is the same on all'
        WHEN r.stages IS NULL THEN 'none makes the others wait long enough to report'
        ELSE 'stages of a pipeline, none of which is later than usual by enough to report'
    END AS sentence,
    [note FOR note IN [r.groups, r.pipeline, r.clock, r.doubled, r.missing, r.unmatched] IF note IS NOT NULL] AS notes
FROM rank_run AS r
CROSS JOIN diagnosed_rank AS c
CROSS JOIN late_ranks AS l
CROSS JOIN delays AS d
LEFT JOIN pace AS p ON true
WHERE r.verdict IS NOT NULL
