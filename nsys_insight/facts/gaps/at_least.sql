INSERT INTO facts.listed_gaps BY NAME
WITH gaps AS MATERIALIZED (
    FROM gpu_gaps
)
SELECT
    row_number() OVER (ORDER BY duration_ns DESC, start_ns, gpu_id) AS gap_id, *,
    (SELECT sum(duration_ns) FROM gaps) AS idle_ns
FROM gaps
WHERE duration_ns >= $min_gap_ns;
