-- The copies that moved unified memory, including those outside the scope. Most of them have no call.
CREATE OR REPLACE TABLE internal.idle_migrations AS
SELECT
    m.start AS start_ns, call_of(m.correlationId, pid_of(m.globalPid)) AS call,
    bool_or(u.word = 'prefetch') AS is_prefetch, NULL::BIGINT AS prefetch_call
FROM unscoped.CUPTI_ACTIVITY_KIND_MEMCPY AS m
JOIN _enum_words AS k ON k.enum = 'copy kind' AND k.id = m.copyKind AND k.word LIKE 'UM %'
LEFT JOIN _enum_words AS u ON u.enum = 'migration' AND u.id = m.migrationCause
GROUP BY ALL
