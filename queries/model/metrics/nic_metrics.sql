CREATE VIEW nic_metrics AS
SELECT
    m.start AS start_ns, m."end" AS end_ns, n.name, n.unit, m.value,
    coalesce(i.name, 'NIC ' || coalesce(x.nicId, m.globalId)) AS nic
FROM raw.NET_NIC_METRIC AS m
LEFT JOIN raw.TARGET_INFO_NETWORK_METRICS AS n USING (metricsListId, metricsIdx)
LEFT JOIN raw.NIC_ID_MAP AS x USING (globalId)
LEFT JOIN raw.TARGET_INFO_NIC_INFO AS i USING (nicId);

COMMENT ON VIEW nic_metrics IS 'Sampled counters of network cards; only with --nic-metrics.';
COMMENT ON COLUMN nic_metrics.start_ns IS 'When the sample''s interval began';
COMMENT ON COLUMN nic_metrics.end_ns IS 'When it ended';
COMMENT ON COLUMN nic_metrics.name IS 'The metric';
COMMENT ON COLUMN nic_metrics.unit IS 'Its unit, in nsys''s words';
COMMENT ON COLUMN nic_metrics.value IS 'The sampled value';
COMMENT ON COLUMN nic_metrics.nic IS 'The network card';
