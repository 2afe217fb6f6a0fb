/*
description = "What an answer by caller says about how callers were found, for the calls of `_sync_callers`."
[columns]
sentence = "The sentence"
*/
FROM _caller_note_of(
    (SELECT has_chains FROM facts.sync_calls),
    (SELECT calls FROM facts.sync_calls),
    (SELECT placed FROM facts.sync_calls),
    'CUDA calls that wait, handle memory or launch a graph'
);
