-- The layouts of NVTX payloads: a row for each field, with its offset.
SELECT s.domainId, s.schemaId, s.payloadSize, e.name, coalesce(e."offset", CASE WHEN e.idx = 0 THEN 0 END)
FROM raw.NVTX_PAYLOAD_SCHEMAS AS s
JOIN raw.NVTX_PAYLOAD_SCHEMA_ENTRIES AS e ON e.schemaId = s.schemaId AND e.domainId IS NOT DISTINCT FROM s.domainId
