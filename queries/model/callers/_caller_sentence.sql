CREATE VIEW _caller_sentence AS
FROM _chains_told(
    EXISTS (FROM facts.callers),
    (SELECT coalesce(sum(calls), 0) FROM _call_counts) - (SELECT count(*) FROM facts.inner_calls),
    (SELECT count(*) FROM facts.called_from ANTI JOIN facts.inner_calls USING (process_id, correlation_id)),
    'CUDA calls'
);

COMMENT ON VIEW _caller_sentence IS
    'What an answer by caller says about how callers were found; no row where every call has a backtrace.';
COMMENT ON COLUMN _caller_sentence.sentence IS 'The sentence';
