CREATE VIEW ncu_rules AS
SELECT r.launch, l.kernel, r.section, r.rule, r.type, r.description, r.speedup_type, r.speedup_pct
FROM raw.ncu_rules AS r
JOIN raw.ncu_launches AS l USING (launch);

COMMENT ON VIEW ncu_rules IS 'One row per remark of ncu''s own rules, from its details page.';
COMMENT ON COLUMN ncu_rules.launch IS 'The launch, in `ncu_launches`';
COMMENT ON COLUMN ncu_rules.kernel IS 'The kernel''s name as ncu prints it';
COMMENT ON COLUMN ncu_rules.section IS 'ncu''s section';
COMMENT ON COLUMN ncu_rules.rule IS 'ncu''s name of the rule';
COMMENT ON COLUMN ncu_rules.type IS 'OPT: something to optimize; WRN: a warning; INF: a remark';
COMMENT ON COLUMN ncu_rules.description IS 'What it says';
COMMENT ON COLUMN ncu_rules.speedup_type IS
    'What speedup_pct is a share of. global: the launch''s duration; local: the part that the rule looks at';
COMMENT ON COLUMN ncu_rules.speedup_pct IS 'Estimated saving; estimates of one launch overlap and do not add up';
