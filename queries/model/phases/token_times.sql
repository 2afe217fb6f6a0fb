/*
description = "One row per token of a request: when the step that makes it was done, as in `phase_steps`."
[columns]
request = "The request, as in `requests`"
number = "The token's number in its request, from 0, of those in the trace"
at_ns = "When the token was done"
since_last_ns = "Inter-token latency: the time since the previous token; NULL for the first"
*/
SELECT
    request, number, at_ns,
    at_ns - lag(at_ns) OVER (PARTITION BY request ORDER BY number) AS since_last_ns
FROM (SELECT request, unnest(token_ns) AS at_ns, generate_subscripts(token_ns, 1) - 1 AS number FROM facts.requests);
