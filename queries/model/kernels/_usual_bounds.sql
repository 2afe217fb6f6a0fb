/*
description = "What usually bounds a kernel of this name."
[columns]
name_id = "The kernel's name"
bound = "compute, memory or latency"
min_duration_ns = "Shortest mean duration for which that holds"
because = "Why"
*/
SELECT DISTINCT ON (n.name_id) n.name_id, r.bound, r.min_duration_ns, r.because
FROM kernel_names AS n
JOIN rules_of_thumb() AS r ON r.family = n.family AND regexp_matches(n.name, r.pattern)
-- Only a library's matrix product is known to reuse what it loads; a hand-written one may do anything.
WHERE r.bound <> 'compute' OR r.family <> 'gemm' OR n.provenance <> 'hand-written'
ORDER BY n.name_id, r.number;
