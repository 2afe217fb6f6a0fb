/*
description = "The same as `_caller_sentence`, for the calls of `_few_callers`."
[columns]
sentence = "The sentence"
*/
FROM _chains_told(
    (SELECT has_chains FROM facts.few_calls),
    (SELECT calls FROM facts.few_calls),
    (SELECT placed FROM facts.few_calls),
    'CUDA calls that wait, handle memory or launch a graph'
);
