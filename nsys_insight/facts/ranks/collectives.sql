-- The collectives of a group. -1 stands for unknown. Where a capture lacks a collective, the order of arrivals is
-- unknown.
INSERT INTO facts.collectives BY NAME
SELECT
    collective, ranks, seen_ranks, start_ns, end_ns,
    nullif(string_split($operations, '|')[operation + 1], '') AS operation, nullif(bytes, -1) AS bytes,
    nullif(step, -1) AS step,
    CASE WHEN NOT starts_with($communicator, 'stream ') THEN $communicator END AS communicator,
    CASE WHEN is_complete THEN arrived_ns END AS arrived_ns,
    CASE WHEN is_complete THEN arrived_ns - start_ns END AS skew_ns,
    CASE WHEN is_complete THEN greatest(end_ns - arrived_ns, 0) END AS transfer_ns,
    CASE WHEN is_complete THEN waiting_ns END AS waiting_ns,
    CASE WHEN is_complete AND arrived_ns - start_ns > $error THEN last_rank END AS last_rank
FROM new_rows
