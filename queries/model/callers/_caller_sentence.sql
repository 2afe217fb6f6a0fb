CREATE VIEW _caller_sentence AS
SELECT 'this trace has no backtraces of CUDA calls: places are identified by NVTX ranges and by the calls before and after; for functions capture with '
    || '--cudabacktrace=all --sample=process-tree, which makes a launch call take twice as long, in Python more; all:10000 records backtraces only for calls of 10 µs and more' AS sentence
WHERE NOT EXISTS (FROM facts.callers)
UNION ALL
SELECT format('{:,}', calls - placed) || ' of ' || format('{:,}', calls)
    || ' CUDA calls have no backtrace that names code of the program; nsys records backtraces for the kinds and durations of calls that --cudabacktrace names'
FROM (
    SELECT
        (SELECT coalesce(sum(calls), 0) FROM _call_counts) - (SELECT count(*) FROM facts.inner_calls) AS calls,
        (SELECT count(*) FROM facts.called_from ANTI JOIN facts.inner_calls USING (process_id, correlation_id)) AS placed
)
WHERE EXISTS (FROM facts.callers) AND placed < calls;

COMMENT ON VIEW _caller_sentence IS 'What an answer by caller says about how callers were found; no row where every call has a backtrace.';
COMMENT ON COLUMN _caller_sentence.sentence IS 'The sentence';
