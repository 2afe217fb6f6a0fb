/*
title = "Bank conflicts in shared memory"
severity = "warning"
evidence = ["bank_conflicts_count", "shared_wavefronts_count"]

[actions]
native = "Pad the row by one element, or swizzle the column index with the row (XOR)."
cutlass = "Choose the shared memory layout that fits the load (a swizzled one for ldmatrix)."
cute = "Compose the shared memory layout with a swizzle."

[ncu_rules]
SharedMemoryConflicts = ""
UncoalescedSharedAccess = ""

[params]
above = [100000, "Conflicts above which removing them is worth the work: common practice; the target is 0"]
*/
SELECT launch, bank_conflicts_count, shared_wavefronts_count
FROM ncu_kernels
WHERE bank_conflicts_count > $above
ORDER BY launch
