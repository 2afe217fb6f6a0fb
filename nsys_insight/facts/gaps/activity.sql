-- One scan of the millions of calls keeps those that launched these operations, those that begin or end within a time
-- slice that a gap touches, and those longer than a slice. A slice is a millisecond, or longer if the gaps are far
-- apart.
INSERT INTO facts.listed_activity BY NAME
WITH slicing AS MATERIALIZED (
    SELECT greatest(1000000, (max(end_ns) - min(start_ns)) // 100000) AS slice_ns FROM facts.listed_gaps
),
slices AS MATERIALIZED (
    SELECT DISTINCT unnest(range(start_ns // slice_ns, end_ns // slice_ns + 1)) AS slice
    FROM facts.listed_gaps
    CROSS JOIN slicing
)
FROM _host_activity
WHERE start_ns // (SELECT slice_ns FROM slicing) IN (FROM slices)
    OR end_ns // (SELECT slice_ns FROM slicing) IN (FROM slices)
    OR end_ns - start_ns >= (SELECT slice_ns FROM slicing)
    OR (process_id, correlation_id) IN (SELECT process_id, correlation_id FROM facts.listed_operations);
