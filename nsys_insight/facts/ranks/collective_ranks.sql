INSERT INTO facts.collective_ranks BY NAME
SELECT
    collective, rank, start_ns, end_ns, CASE WHEN is_complete THEN waiting_ns END AS waiting_ns,
    nullif(bytes, -1) AS bytes
FROM new_rows
