CREATE TABLE IF NOT EXISTS facts.gpu_idle (
    gpu_id BIGINT, cause VARCHAR, host VARCHAR, idle_ns BIGINT
);

INSERT INTO facts.gpu_idle BY NAME
WITH times AS NOT MATERIALIZED (
    FROM _idle_time
),
-- Read twice, and not kept: that would be as large as all gaps.
pieces AS NOT MATERIALIZED (
    SELECT
        gpu_id, start_ns, end_ns, call_ns, returned_ns, is_copy, host, sync_ns, copy_ns, alloc_ns, api_ns, gap_ns,
        gap_end_ns, 0 AS window_ns
    FROM in_scope('times')
),
gaps AS NOT MATERIALIZED (
    FROM pieces WHERE start_ns = gap_ns AND end_ns = gap_end_ns
),
cut AS MATERIALIZED (
    FROM pieces WHERE start_ns <> gap_ns OR end_ns <> gap_end_ns
)
SELECT gpu_id, cause, host, idle_ns
FROM _idle_of('gaps', 'cut');
