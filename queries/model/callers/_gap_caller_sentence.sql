/*
description = "What an answer by caller says about how callers were found, for the calls of `_gap_callers`."
[columns]
sentence = "The sentence"
*/
FROM _caller_note_of(
    (SELECT has_chains FROM facts.gap_calls),
    (SELECT calls FROM facts.gap_calls),
    (SELECT placed FROM facts.gap_calls),
    'CUDA calls that launched what ended these gaps'
);
