CREATE VIEW _pageable_reads AS
SELECT DISTINCT pid_of(m.globalPid) AS process_id, m.correlationId AS correlation_id
FROM whole.CUPTI_ACTIVITY_KIND_MEMCPY AS m
JOIN _enum_words AS k ON k.enum = 'copy kind' AND k.id = m.copyKind AND k.word = 'D2H'
JOIN _enum_words AS d ON d.enum = 'memory' AND d.id = m.dstKind AND d.word = 'pageable'
WHERE m.correlationId IS NOT NULL;

COMMENT ON VIEW _pageable_reads IS 'The calls that copied from a GPU into pageable memory of the host, also those that a scope leaves out: they return when the copy is done, whatever their name says.';
COMMENT ON COLUMN _pageable_reads.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _pageable_reads.correlation_id IS 'Joins with `_host_activity` and `_gpu_work`, together with process_id';
