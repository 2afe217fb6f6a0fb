/*
description = "What an answer by caller says about how callers were found; no row where every call has a backtrace."
[columns]
sentence = "The sentence"
*/
FROM _caller_note_of(
    EXISTS (FROM facts.callers),
    (SELECT coalesce(sum(calls), 0) FROM _call_counts) - (SELECT count(*) FROM _inner_calls),
    (SELECT count(*) FROM facts.called_from ANTI JOIN _inner_calls USING (process_id, correlation_id)),
    'CUDA calls'
);
