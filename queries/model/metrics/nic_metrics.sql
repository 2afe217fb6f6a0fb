/*
description = "Sampled counters of network cards; only with --nic-metrics."
[columns]
start_ns = "When the sample's interval began"
end_ns = "When the sample's interval ended"
name = "The metric"
unit = "Unit of the metric, in nsys's words"
value = "The sampled value"
nic = "The network card"
*/
SELECT
    m.start AS start_ns, m."end" AS end_ns, n.name, n.unit, m.value,
    coalesce(i.name, 'NIC ' || coalesce(x.nicId, m.globalId)) AS nic
FROM raw.NET_NIC_METRIC AS m
LEFT JOIN raw.TARGET_INFO_NETWORK_METRICS AS n USING (metricsListId, metricsIdx)
LEFT JOIN raw.NIC_ID_MAP AS x USING (globalId)
LEFT JOIN raw.TARGET_INFO_NIC_INFO AS i USING (nicId);
