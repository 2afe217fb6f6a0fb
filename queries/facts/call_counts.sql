/* topic = "api" */
-- Group by the id of the name first: hashing the names of millions of calls takes three times as long.
CREATE TABLE IF NOT EXISTS facts.call_counts (
    process_id BIGINT, thread_id BIGINT, name VARCHAR, call_group VARCHAR, calls BIGINT
);

INSERT INTO facts.call_counts BY NAME
SELECT
    pid_of(c.globalTid) AS process_id, tid_of(c.globalTid) AS thread_id, n.name, n.call_group,
    sum(c.calls)::BIGINT AS calls
FROM (
    SELECT globalTid, nameId, count(*) AS calls
    FROM raw.CUPTI_ACTIVITY_KIND_RUNTIME
    WHERE eventClass IS DISTINCT FROM 67
    GROUP BY ALL
) AS c
LEFT JOIN _api_names AS n ON n.name_id = c.nameId
GROUP BY ALL;

COMMENT ON VIEW _call_counts IS
    'How many API calls each thread made of each function, including calls inside other calls.';
COMMENT ON COLUMN _call_counts.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _call_counts.thread_id IS 'Operating system''s thread id';
COMMENT ON COLUMN _call_counts.name IS 'Function, without the suffixes of the linker';
COMMENT ON COLUMN _call_counts.call_group IS 'As in `api_calls`';
COMMENT ON COLUMN _call_counts.calls IS 'Calls';
