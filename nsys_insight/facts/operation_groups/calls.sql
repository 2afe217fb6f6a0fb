-- The API calls by name, without launches, copies and memsets: those have a row for what they run. A driver call
-- inside a runtime call has another name.
INSERT INTO facts.operation_groups BY NAME
WITH first_steps AS (
    SELECT
        min(host_start_ns) AS host_start_ns, max(host_end_ns) AS host_end_ns, any_value(units) AS units
    FROM internal.first_steps
),
calls AS (
    SELECT r.nameId AS name_id, count(*) AS calls, sum(duration(r.start, r."end"))::BIGINT AS host_ns,
        min(duration(r.start, r."end")) AS min_ns, count(DISTINCT r.globalTid) AS threads
    FROM raw.CUPTI_ACTIVITY_KIND_RUNTIME AS r, first_steps AS f
    WHERE r.start >= f.host_start_ns AND r.start < f.host_end_ns AND r.eventClass IS DISTINCT FROM 67
        AND pid_of(r.globalTid) = $process
    GROUP BY r.nameId
)
SELECT
    ($process)::BIGINT AS process_id, 'call' AS kind, n.name AS label, -7 AS key, any_value(f.units) AS units,
    sum(c.calls)::BIGINT AS calls, 0 AS total_ns, min(c.min_ns) AS min_ns, sum(c.host_ns)::BIGINT AS host_ns,
    0 AS idle_before_ns, max(c.threads) AS threads, 0 AS read_backs, 0 AS in_graph
FROM calls AS c
JOIN _api_names AS n USING (name_id)
CROSS JOIN first_steps AS f
WHERE n.call_group NOT IN ('launch', 'graph launch', 'copy', 'memset')
GROUP BY n.name;

DROP TABLE internal.first_steps
