-- NVTX ranges that launch the given kernels in a time window, the most launches first.
WITH kernel_list AS (
    SELECT unnest($names)::BIGINT AS name_id
),
launch_ranges AS (
    SELECT k.name_id, k.nvtx_path, count(*) AS calls, sum(k.duration_ns)::BIGINT AS total_ns
    FROM kernels_in_nvtx AS k
    SEMI JOIN kernel_list USING (name_id)
    WHERE k.start_ns >= $from_ns AND k.start_ns < $to_ns
    GROUP BY k.name_id, k.nvtx_path
),
folded_names AS (
    SELECT nvtx_path, fold(nvtx_path) AS place
    FROM (SELECT DISTINCT nvtx_path FROM launch_ranges WHERE nvtx_path IS NOT NULL)
),
folded_ranges AS (
    SELECT p.name_id, n.place, sum(p.calls)::BIGINT AS calls, sum(p.total_ns)::BIGINT AS total_ns
    FROM launch_ranges AS p
    LEFT JOIN folded_names AS n USING (nvtx_path)
    GROUP BY p.name_id, n.place
),
ranked_ranges AS (
    SELECT *, row_number() OVER (PARTITION BY name_id ORDER BY calls DESC, place) AS place_rank FROM folded_ranges
)
SELECT name_id, place, calls, total_ns
FROM ranked_ranges
WHERE place_rank <= $max_rows
ORDER BY name_id, place_rank
