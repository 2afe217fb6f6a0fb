CREATE VIEW wall AS
WITH trace AS (
    SELECT min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM raw.extents
),
intervals AS (
    SELECT coalesce(scope.from_ns, trace.start_ns) AS start_ns, coalesce(scope.to_ns, trace.end_ns) AS end_ns
    FROM trace CROSS JOIN scope
    WHERE scope.nvtx IS NULL
    UNION ALL
    SELECT greatest(w.start_ns, coalesce(scope.from_ns, w.start_ns)), least(w.end_ns, coalesce(scope.to_ns, w.end_ns))
    FROM scope_windows AS w CROSS JOIN scope
)
SELECT start_ns, end_ns, end_ns - start_ns AS duration_ns
FROM intervals
WHERE end_ns > start_ns;

COMMENT ON VIEW wall IS 'The time that shares of wall refer to: from the first to the last CUDA event (API call or device activity), or the scope''s own intervals: --from to --to, the ranges of --nvtx.';
COMMENT ON COLUMN wall.start_ns IS 'Where the interval begins';
COMMENT ON COLUMN wall.end_ns IS 'Where it ends';
COMMENT ON COLUMN wall.duration_ns IS 'end_ns - start_ns';
