/*
description = "One row per MPI call; only with -t mpi."
[columns]
start_ns = "When the call began"
end_ns = "When the call returned"
name = "The function"
kind = "message (a send or receive), collective, wait (Wait, Test and Start of requests), or other"
rank = "Rank of the process in MPI_COMM_WORLD; NULL where nsys does not record it"
peer_rank = "Other rank of a message, numbered in its communicator; for a Sendrecv, the one that it sends to"
root_rank = "Root of the collective, numbered in its communicator"
tag = "Tag of the message"
request = "MPI's handle of the request that a nonblocking call starts"
sent_bytes = "What the rank sends; for a Sendrecv too, whose receive is not recorded; NULL where unknown"
received_bytes = "What the rank receives; NULL where unknown"
communicator = """world, or the rank and number that nsys identifies a communicator by; the same on all of its ranks;
    NULL where unknown"""
communicator_ranks = "Number of ranks in the communicator"
communicator_rank = "Rank of the process in the communicator"
*/
-- nsys writes a row for each request of a Waitall or Startall: these rows are one call. A _init call only prepares a
-- message, so it moves no bytes. Older versions have MPI calls as ranges of the NVTX domain MPI, without arguments.
WITH event_rows AS (
    SELECT 'message' AS kind, start, "end", globalTid, textId, commHandle, remoteRank, NULL AS rootRank, tag,
        size AS sent, size AS received,
        requestHandle AS request
    FROM raw.MPI_P2P_EVENTS
    UNION ALL
    SELECT 'collective', start, "end", globalTid, textId, commHandle, NULL, rootRank, NULL, size, recvSize,
        requestHandle
    FROM raw.MPI_COLLECTIVES_EVENTS
    UNION ALL
    SELECT DISTINCT 'wait', start, "end", globalTid, textId, NULL::BIGINT, NULL::BIGINT, NULL::BIGINT, NULL::BIGINT,
        NULL::BIGINT, NULL::BIGINT, NULL::BIGINT
    FROM raw.MPI_START_WAIT_EVENTS
    UNION ALL
    SELECT 'other', start, "end", globalTid, textId, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM raw.MPI_OTHER_EVENTS
),
communicators AS (
    SELECT rank, commHandle, timestamp, size, localRank,
        CASE WHEN coalesce(parentHandle, 0) = 0 THEN 'world' ELSE concat(groupRoot, '.', groupRootUid) END AS name
    FROM raw.MPI_COMMUNICATORS
),
process_ranks AS (
    SELECT pid_of(globalTid) AS process_id, min(rank) AS rank FROM raw.MPI_RANKS GROUP BY ALL
),
named_events AS (
    SELECT e.*, coalesce(s.value, '') AS name FROM event_rows AS e LEFT JOIN raw.StringIds AS s ON s.id = e.textId
),
calls AS (
    SELECT
        e.start AS start_ns, e."end" AS end_ns, duration(e.start, e."end") AS duration_ns, e.name,
        CASE WHEN ends_with(e.name, '_init') THEN 'other' ELSE e.kind END AS kind, r.rank,
        pid_of(e.globalTid) AS process_id, tid_of(e.globalTid) AS thread_id, e.commHandle, e.remoteRank AS peer_rank,
        e.rootRank AS root_rank, e.tag, e.request,
        CASE WHEN NOT (ends_with(e.name, '_init') OR is_mpi_receive(e.name)) THEN e.sent END AS sent_bytes,
        CASE WHEN e.kind = 'collective' OR NOT ends_with(e.name, '_init') AND is_mpi_receive(e.name)
            THEN e.received END AS received_bytes
    FROM named_events AS e
    LEFT JOIN process_ranks AS r ON r.process_id = pid_of(e.globalTid)
)
SELECT n.* EXCLUDE (commHandle), c.name AS communicator, c.size AS communicator_ranks, c.localRank AS communicator_rank
FROM calls AS n
ASOF LEFT JOIN communicators AS c
    ON c.rank = n.rank AND c.commHandle = n.commHandle AND c.timestamp <= n.end_ns
UNION ALL BY NAME
SELECT start_ns, end_ns, duration_ns, name, mpi_kind(name) AS kind, process_id, thread_id
FROM nvtx_ranges
WHERE domain = 'MPI' AND name LIKE 'MPI\_%' ESCAPE '\'
    AND NOT EXISTS (FROM event_rows);
