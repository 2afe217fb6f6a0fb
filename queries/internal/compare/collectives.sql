-- What the collectives and messages of each operation and size cost a rank in each step, in means over the ranks.
-- A step without any counts as 0. No row where the ranks are not matched by steps.
WITH run_steps AS (
    SELECT s.step, count(*) AS ranks
    FROM rank_steps AS s CROSS JOIN rank_run AS r
    WHERE r.unit = 'step' AND r.verdict IS NOT NULL
    GROUP BY s.step
),
durations AS (
    SELECT collective, sum(end_ns - start_ns) AS kernel_ns FROM collective_ranks GROUP BY collective
),
-- Of a message, the half that each side spends in it.
costs AS (
    SELECT c.step, c.operation, c.bytes, d.kernel_ns, c.waiting_ns, c.ranks * c.transfer_ns AS transfer_ns
    FROM collectives AS c JOIN durations AS d USING (collective)
    UNION ALL
    SELECT
        s.step, 'SendRecv', m.bytes, m.send_ns + m.receive_ns, m.send_waiting_ns + m.receive_waiting_ns,
        2 * m.transfer_ns
    FROM messages AS m
    ASOF JOIN rank_steps AS s ON s.rank = m.receiver AND s.start_ns <= m.received_ns
    WHERE m.received_ns < s.start_ns + s.wall_ns
),
operations AS (
    SELECT DISTINCT operation, bytes FROM costs SEMI JOIN run_steps USING (step) WHERE operation IS NOT NULL
)
SELECT
    o.operation, o.bytes, s.step,
    count(c.step) AS calls,
    coalesce(sum(c.kernel_ns), 0)::DOUBLE / s.ranks AS kernel_ns,
    CASE WHEN count(c.waiting_ns) = count(c.step) THEN coalesce(sum(c.waiting_ns), 0)::DOUBLE / s.ranks END
        AS waiting_ns,
    CASE WHEN count(c.transfer_ns) = count(c.step) THEN coalesce(sum(c.transfer_ns), 0)::DOUBLE / s.ranks END
        AS transfer_ns
FROM run_steps AS s
CROSS JOIN operations AS o
LEFT JOIN costs AS c
    ON c.step = s.step AND c.operation = o.operation AND c.bytes IS NOT DISTINCT FROM o.bytes
GROUP BY o.operation, o.bytes, s.step, s.ranks
ORDER BY o.operation, o.bytes, s.step
