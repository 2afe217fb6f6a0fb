CREATE VIEW _usual_bounds AS
SELECT DISTINCT ON (n.name_id) n.name_id, r.bound, r.least_ns, r.because
FROM kernel_names AS n
JOIN rules_of_thumb() AS r ON r.family = n.family AND regexp_matches(n.name, r.pattern)
-- Only a library's matrix product is known to reuse what it loads; a hand-written one may do anything.
WHERE r.bound <> 'compute' OR r.family <> 'gemm' OR n.provenance <> 'hand-written'
ORDER BY n.name_id, r.number;

COMMENT ON VIEW _usual_bounds IS 'What usually bounds a kernel of this name.';
COMMENT ON COLUMN _usual_bounds.name_id IS 'The kernel''s name';
COMMENT ON COLUMN _usual_bounds.bound IS 'compute, memory or latency';
COMMENT ON COLUMN _usual_bounds.least_ns IS 'Shortest mean duration for which that holds';
COMMENT ON COLUMN _usual_bounds.because IS 'Why';
