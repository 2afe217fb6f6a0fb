/*
description = "The same as `_caller_sentence`, for the calls of `_gap_callers`."
[columns]
sentence = "The sentence"
*/
FROM _chains_told(
    (SELECT has_chains FROM facts.gap_calls),
    (SELECT calls FROM facts.gap_calls),
    (SELECT placed FROM facts.gap_calls),
    'CUDA calls that launched what ended these gaps'
);
