/*
title = "Threads of a warp are idle"
severity = "warning"
evidence = ["divergence_pct", "branch_uniform_pct"]

[actions]
native = """
Let the threads of a warp take the same branch: sort or bin the work, move the condition out, use predication for
short branches."""
cute = "Choose threads x elements per thread close to N, so that few threads are idle."
triton = "Choose BLOCK close to N: masked lanes do nothing."

[ncu_rules]
ThreadDivergence = ""
Divergen = ""

[params]
above = [15.0, "Idle lanes, in %: the target for warp execution efficiency is 85 (common practice)"]
cute_above = [20.0, "The same for CuTe: common practice"]
*/
SELECT launch, divergence_pct, branch_uniform_pct
FROM ncu_kernels
WHERE divergence_pct > CASE implementation WHEN 'cute' THEN $cute_above ELSE $above END
ORDER BY launch
