/*
description = "How many CUDA calls have a known caller; no row where every call has a backtrace."
[columns]
calls = "CUDA calls"
unplaced = "Calls without a backtrace that names code of the program"
has_no_chains = "TRUE if the trace has no backtraces of CUDA calls"
which = "Which calls these are"
*/
SELECT calls, calls - placed AS unplaced, NOT has_chains AS has_no_chains, 'CUDA calls' AS which
FROM (
    SELECT
        EXISTS (FROM facts.callers) AS has_chains,
        (SELECT coalesce(sum(calls), 0)::BIGINT FROM _call_counts) - (SELECT count(*) FROM _inner_calls) AS calls,
        (SELECT count(*) FROM facts.called_from ANTI JOIN _inner_calls USING (process_id, correlation_id)) AS placed
)
WHERE NOT has_chains OR placed < calls;
