-- Duration histogram of the given kernels. Bins are logarithmic, from the shortest to the longest launch of each
-- kernel.
WITH kernel_list AS (
    SELECT unnest($names)::BIGINT AS name_id, unnest($shortest)::BIGINT AS min_ns, unnest($longest)::BIGINT AS max_ns
)
SELECT
    name_id,
    CASE WHEN c.max_ns > c.min_ns THEN
        least(
            $bins - 1,
            floor(
                $bins * ln(greatest(k.duration_ns, 1) / greatest(c.min_ns, 1))
                    / ln(greatest(c.max_ns, 1) / greatest(c.min_ns, 1))
            )
        )
    ELSE 0 END::BIGINT AS bin,
    count(*) AS calls
FROM kernel_events AS k
JOIN kernel_list AS c USING (name_id)
GROUP BY name_id, bin
ORDER BY name_id, bin
