CREATE VIEW longest_gaps AS
FROM facts.listed_gaps;

COMMENT ON VIEW longest_gaps IS
    'The 1,000 longest of `gpu_gaps`, or with --min-gap all that are at least that long: those that the report '
    '`gaps` lists.';
COMMENT ON COLUMN longest_gaps.gap_id IS
    '1 for the longest gap, 2 for the next; among gaps of equal length, the earlier first';
COMMENT ON COLUMN longest_gaps.gpu_id IS 'The machine''s GPU where the trace says which, else the CUDA device number';
COMMENT ON COLUMN longest_gaps.start_ns IS 'When the GPU became idle';
COMMENT ON COLUMN longest_gaps.end_ns IS 'When the next operation started';
COMMENT ON COLUMN longest_gaps.duration_ns IS 'end_ns - start_ns';
COMMENT ON COLUMN longest_gaps.running_end_ns IS
    'When the operations before it ended: start_ns, unless the scope cut the gap';
COMMENT ON COLUMN longest_gaps.next_ns IS 'When the operation after it started: end_ns, unless the scope cut the gap';
COMMENT ON COLUMN longest_gaps.idle_ns IS 'Total time of all gaps, including those not listed';
