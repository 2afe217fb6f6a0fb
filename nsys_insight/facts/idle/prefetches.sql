-- The call that requested a migration in advance: it is in progress when the migration begins, or it is the last one
-- before a migration that is a prefetch.
CREATE OR REPLACE TABLE internal.idle_migrations AS
SELECT
    m.start_ns, m.call, m.is_prefetch,
    CASE WHEN m.is_prefetch OR p.end_ns >= m.start_ns THEN p.call END AS prefetch_call
FROM internal.idle_migrations AS m
ASOF LEFT JOIN (
    SELECT process_id, start_ns, end_ns, call_of(correlation_id, process_id) AS call
    FROM _host_activity JOIN _api_names USING (name_id)
    WHERE kind = 'api' AND name LIKE '%MemPrefetch%'
) AS p
    ON p.process_id = m.call & 16777215 AND p.start_ns <= m.start_ns
