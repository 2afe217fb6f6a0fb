-- The kernels that graphs launch on the device. They are looked for only where operations lack a correlation id.
INSERT INTO facts.device_launches
WITH operations AS MATERIALIZED (
    SELECT DISTINCT start_ns, call AS process_id FROM _gpu_reach WHERE call BETWEEN 0 AND 16777215
),
kernels AS MATERIALIZED (
    SELECT DISTINCT o.start_ns, o.process_id
    FROM unscoped.CUPTI_ACTIVITY_KIND_KERNEL AS k
    JOIN operations AS o ON o.start_ns = k.start AND o.process_id = pid_of(k.globalPid)
    WHERE k.graphNodeId > 0
),
graph_launches AS MATERIALIZED (
    SELECT a.process_id, a.start_ns, a.end_ns
    FROM _host_activity AS a
    JOIN _api_names AS n USING (name_id)
    WHERE a.kind = 'api' AND n.call_group = 'graph launch' AND a.process_id IN (SELECT process_id FROM kernels)
)
SELECT k.start_ns, k.process_id, g.start_ns, g.end_ns
FROM kernels AS k
ASOF JOIN graph_launches AS g ON g.process_id = k.process_id AND g.start_ns <= k.start_ns
