CREATE VIEW _gap_caller_sentence AS
FROM _chains_told(
    (SELECT has_chains FROM facts.gap_calls),
    (SELECT calls FROM facts.gap_calls),
    (SELECT placed FROM facts.gap_calls),
    'CUDA calls that launched what ended these gaps'
);

COMMENT ON VIEW _gap_caller_sentence IS 'The same as `_caller_sentence`, for the calls of `_gap_callers`.';
COMMENT ON COLUMN _gap_caller_sentence.sentence IS 'The sentence';
