/*
description = "One row per remark of ncu's own rules, from its details page."
[columns]
launch = "The launch, in `ncu_launches`"
kernel = "The kernel's name as ncu prints it"
section = "ncu's section"
rule = "ncu's name of the rule"
type = "OPT: something to optimize; WRN: a warning; INF: a remark"
description = "What it says"
speedup_type = "What speedup_pct is a share of. global: the launch's duration; local: the part that the rule looks at"
speedup_pct = "Estimated saving; estimates of one launch overlap and do not add up"
*/
SELECT r.launch, l.kernel, r.section, r.rule, r.type, r.description, r.speedup_type, r.speedup_pct
FROM raw.ncu_rules AS r
JOIN raw.ncu_launches AS l USING (launch);
