/*
description = "How long each blocking MPI call waits for another rank, where the trace shows it."
[columns]
thread_id = "Thread that called"
start_ns = "When the call began"
end_ns = "When the call returned"
waiting_ns = "Time from then until the ranks that it needs had arrived; 0 where they were there before"
*/
-- A call is ready when the ranks that it needs have arrived: all of them in an Allreduce or a Barrier, the root in a
-- Bcast, and at the root of a Reduce all others. Collectives are matched by communicator and order, messages by
-- communicator, ranks, tag and order, if all ranks have the same number of them. A send that returns before its
-- receive has begun was buffered: it did not wait. In a Scan, who waits for whom depends on the implementation.
WITH ordered_calls AS MATERIALIZED (
    SELECT
        *,
        CASE WHEN is_mpi_receive(name) THEN [peer_rank, communicator_rank] ELSE [communicator_rank, peer_rank]
        END AS way,
        row_number() OVER (PARTITION BY communicator, communicator_rank, kind ORDER BY start_ns) AS place
    FROM mpi_calls
    WHERE communicator IS NOT NULL AND kind IN ('collective', 'message')
),
collectives AS (
    SELECT
        communicator, place, max(start_ns) AS last_ns,
        max(start_ns) FILTER (communicator_rank = root_rank) AS root_ns,
        bool_and(count(*) = any_value(communicator_ranks) AND count(DISTINCT name) = 1) OVER (PARTITION BY communicator)
            AS is_matched
    FROM ordered_calls WHERE kind = 'collective'
    GROUP BY communicator, place
),
messages AS (
    SELECT
        *, row_number() OVER (PARTITION BY communicator, way, tag, is_mpi_receive(name) ORDER BY start_ns) AS nth,
        count(*) FILTER (is_mpi_receive(name)) OVER of_way = count(*) FILTER (NOT is_mpi_receive(name)) OVER of_way
            AS is_matched
    FROM ordered_calls WHERE kind = 'message'
    WINDOW of_way AS (PARTITION BY communicator, way, tag)
),
ready_times AS MATERIALIZED (
    SELECT
        n.process_id, n.thread_id, n.start_ns, n.end_ns, n.request,
        CASE
            WHEN regexp_matches(n.name, 'scan', 'i') OR NOT c.is_matched THEN NULL
            WHEN regexp_matches(n.name, '^MPI_I?(bcast|scatterv?)$', 'i') THEN c.root_ns
            WHEN regexp_matches(n.name, '^MPI_I?(reduce|gatherv?)$', 'i') AND n.communicator_rank <> n.root_rank
                THEN n.start_ns
            ELSE c.last_ns
        END AS ready_ns
    FROM ordered_calls AS n JOIN collectives AS c USING (communicator, place)
    WHERE n.kind = 'collective'
    UNION ALL
    SELECT m.process_id, m.thread_id, m.start_ns, m.end_ns, m.request, o.start_ns
    FROM messages AS m
    JOIN messages AS o ON o.communicator = m.communicator AND o.way = m.way AND o.tag = m.tag AND o.nth = m.nth
        AND is_mpi_receive(o.name) <> is_mpi_receive(m.name)
    WHERE m.is_matched
),
-- What a Wait waits for: the last of its requests whose partner arrives before it returns.
request_waits AS (
    SELECT w.process_id, w.thread_id, w.start_ns, w.end_ns, max(r.ready_ns) FILTER (r.ready_ns <= w.end_ns) AS ready_ns
    FROM (
        SELECT pid_of(globalTid) AS process_id, tid_of(globalTid) AS thread_id, start AS start_ns, "end" AS end_ns,
            requestHandle AS request
        FROM raw.MPI_START_WAIT_EVENTS
        WHERE textId IN (SELECT id FROM raw.StringIds WHERE starts_with(value, 'MPI_Wait'))
    ) AS w
    ASOF JOIN (
        SELECT c.process_id, c.request, c.start_ns, t.ready_ns
        FROM mpi_calls AS c LEFT JOIN ready_times AS t USING (process_id, thread_id, start_ns, request)
        WHERE c.request IS NOT NULL
    ) AS r
        ON r.process_id = w.process_id AND r.request = w.request AND r.start_ns <= w.start_ns
    GROUP BY ALL
)
SELECT
    process_id, thread_id, start_ns, end_ns,
    CASE WHEN ready_ns < end_ns THEN greatest(ready_ns - start_ns, 0) ELSE 0 END AS waiting_ns
FROM (
    SELECT process_id, thread_id, start_ns, end_ns, ready_ns FROM ready_times WHERE request IS NULL
    UNION ALL
    FROM request_waits
)
WHERE ready_ns IS NOT NULL;
