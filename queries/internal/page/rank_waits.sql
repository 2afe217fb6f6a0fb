-- Collectives and messages of the ranks in a step. Times start when the last collective before the step ended on each
-- rank.
WITH waits AS (
    SELECT
        o.rank, o.start_ns, o.end_ns, coalesce(o.waiting_ns, 0) AS waiting_ns,
        coalesce(c.operation, 'collective') AS what, c.bytes
    FROM collective_ranks AS o JOIN collectives AS c USING (collective)
    UNION ALL
    SELECT sender, sent_ns, sent_ns + send_ns, send_waiting_ns, 'send to rank ' || receiver, bytes FROM messages
    UNION ALL
    SELECT receiver, received_ns, received_ns + receive_ns, receive_waiting_ns, 'receive from rank ' || sender, bytes
    FROM messages
)
SELECT t.rank, t.start_ns - s.start_ns AS start_ns, t.end_ns - s.start_ns AS end_ns, t.waiting_ns, t.what, t.bytes
FROM waits AS t
JOIN rank_steps AS s USING (rank)
WHERE s.step = $step AND t.end_ns > s.start_ns AND t.start_ns < s.start_ns + s.wall_ns
ORDER BY t.rank, t.start_ns, t.end_ns
