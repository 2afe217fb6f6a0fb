/*
description = "How many of the calls of `_gap_callers` have a known caller; no row where every call has a backtrace."
[columns]
calls = "Calls that launched what ended the gaps"
unplaced = "Calls without a backtrace that names code of the program"
has_no_chains = "TRUE if the trace has no backtraces of CUDA calls"
which = "Which calls these are"
*/
SELECT
    calls, calls - placed AS unplaced, NOT has_chains AS has_no_chains,
    'CUDA calls that launched what ended these gaps' AS which
FROM facts.gap_calls
WHERE NOT has_chains OR placed < calls;
