-- The steps of a capture: how many, and which share of the time between the first and the last call they take. The
-- range is NULL where the steps are no NVTX ranges, and has_several_ranges is true where each step has several.
SELECT
    count(*) AS steps,
    sum(s.duration_ns) / nullif((SELECT max(end_ns) - min(start_ns) FROM api_calls), 0) AS share,
    any_value(m.range_name) AS range_name,
    bool_or(m.range_name NOT IN (SELECT folded_name(name) FROM nvtx_ranges WHERE name IS NOT NULL))
        AS has_several_ranges
FROM steps AS s CROSS JOIN _step_source AS m
