-- The summary of the ranks of a run, and the rank to diagnose: the late rank with the largest delay, or if none is late
-- the rank that waits least. No row if no ranks are matched with each other.
WITH rank_totals AS (
    SELECT
        rank, sum(late_ns)::DOUBLE AS late_ns, sum(waiting_ns)::DOUBLE AS waiting_ns,
        sum(transfer_ns)::DOUBLE AS transfer_ns
    FROM rank_steps
    GROUP BY rank
),
diagnosed_rank AS (
    SELECT t.*, y.text, r.trace, r.process_id, r.device_id, r.cause, r.busy_ratio, r.host, r.place,
        r.stretch_before
    FROM rank_totals AS t JOIN ranks AS r USING (rank) LEFT JOIN _lateness AS y USING (rank)
    ORDER BY t.late_ns DESC, t.waiting_ns, t.rank
    LIMIT 1
),
late_ranks AS (
    SELECT count(*) AS ranks, ranks_text(list(rank ORDER BY rank)) AS names FROM _lateness
),
mean_wait AS (
    SELECT avg(waiting_ns) AS waiting_ns FROM rank_steps
)
SELECT
    r.verdict, r.ranks, c.rank, c.trace,
    -- What distinguishes the rank from the others in its trace.
    CASE WHEN (SELECT count(DISTINCT process_id) FROM ranks WHERE trace = c.trace) > 1 THEN c.process_id END AS process,
    CASE
        WHEN (SELECT count(*) FROM ranks WHERE trace = c.trace AND process_id = c.process_id) > 1 THEN c.device_id
    END AS device,
    coalesce(c.waiting_ns / nullif(c.waiting_ns + c.transfer_ns, 0), 0) AS waiting_share,
    r.ranks || ' ranks: ' || CASE r.verdict
        WHEN 'late' THEN l.names || CASE l.ranks WHEN 1 THEN ' is' ELSE ' are' END
            || ' late in ' || c.text
            || CASE c.cause
                WHEN 'host' THEN ': ' || coalesce(c.host, 'its host')
                    || coalesce(' in ' || c.place, ' before ' || c.stretch_before, '')
                WHEN 'gpu' THEN ': its GPU is busy ' || format('{:.2g}', c.busy_ratio) || ' times as long'
                ELSE ''
            END || '; ' || (SELECT text FROM _others_wait)
        WHEN 'moving'
            THEN 'a different rank is late from step to step; a rank waits ' || time_text(o.waiting_ns) || ' per '
                || r.unit || ' on average'
        WHEN 'host'
            THEN 'no rank is late by itself: ' || (SELECT text FROM _host_pace) || ', so the cure is the same on all'
        ELSE CASE WHEN r.stages IS NULL THEN 'none makes the others wait long enough to report'
            ELSE 'stages of a pipeline, none of which is later than usual by enough to report' END
    END AS sentence,
    [note FOR note IN [r.groups, r.pipeline, r.clock, r.doubled, r.missing, r.unmatched] IF note IS NOT NULL] AS notes
FROM rank_run AS r, diagnosed_rank AS c, late_ranks AS l, mean_wait AS o
WHERE r.verdict IS NOT NULL
