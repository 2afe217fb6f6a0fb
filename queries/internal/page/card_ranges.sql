-- The NVTX ranges in which some kernels are launched that run in a window of time, the most launches first.
WITH chosen AS (
    SELECT unnest($names)::BIGINT AS name_id
),
placed AS (
    SELECT k.name_id, k.nvtx_path, count(*) AS calls, sum(k.duration_ns)::BIGINT AS total_ns
    FROM kernels_in_nvtx AS k
    SEMI JOIN chosen USING (name_id)
    WHERE k.start_ns >= $from_ns AND k.start_ns < $to_ns
    GROUP BY k.name_id, k.nvtx_path
),
names AS (
    SELECT nvtx_path, fold(nvtx_path) AS place FROM (SELECT DISTINCT nvtx_path FROM placed WHERE nvtx_path IS NOT NULL)
),
folded AS (
    SELECT p.name_id, n.place, sum(p.calls)::BIGINT AS calls, sum(p.total_ns)::BIGINT AS total_ns
    FROM placed AS p
    LEFT JOIN names AS n USING (nvtx_path)
    GROUP BY p.name_id, n.place
),
ranked AS (
    SELECT *, row_number() OVER (PARTITION BY name_id ORDER BY calls DESC, place) AS turn FROM folded
)
SELECT name_id, place, calls, total_ns
FROM ranked
WHERE turn <= $most
ORDER BY name_id, turn
