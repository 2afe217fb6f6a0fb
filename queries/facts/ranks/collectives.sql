-- What is found of a group's collectives: -1 is not known, and of those that not all ranks have in their captures it is
-- not known who came first.
INSERT INTO facts.collectives BY NAME
SELECT
    collective, ranks, seen_ranks, start_ns, end_ns,
    nullif(string_split($operations, '|')[operation + 1], '') AS operation, nullif(bytes, -1) AS bytes,
    nullif(step, -1) AS step,
    CASE WHEN NOT starts_with($communicator, 'stream ') THEN $communicator END AS communicator,
    CASE WHEN whole THEN arrived_ns END AS arrived_ns,
    CASE WHEN whole THEN arrived_ns - start_ns END AS skew_ns,
    CASE WHEN whole THEN greatest(end_ns - arrived_ns, 0) END AS transfer_ns,
    CASE WHEN whole THEN waiting_ns END AS waiting_ns,
    CASE WHEN whole AND arrived_ns - start_ns > $error THEN last_rank END AS last_rank
FROM found
