CREATE VIEW _caller_sentence AS
SELECT 'this trace has no backtraces of CUDA calls: places are identified by NVTX ranges and by the calls before and after; for functions capture with '
    || '--cudabacktrace=all --sample=process-tree, which makes a launch call twice as long, in Python more; all:10000 takes only those of calls of 10 µs and more' AS sentence
WHERE NOT EXISTS (FROM facts.callers)
UNION ALL
SELECT format('{:,}', count(*) - count(c.correlation_id)) || ' of ' || format('{:,}', count(*))
    || ' CUDA calls have no backtrace that names code of the program; nsys records those of calls of the kinds and durations that --cudabacktrace names'
FROM outer_api_calls AS a
LEFT JOIN facts.called_from AS c USING (process_id, correlation_id)
WHERE EXISTS (FROM facts.callers)
HAVING count(c.correlation_id) < count(*);

COMMENT ON VIEW _caller_sentence IS 'What an answer by caller says about how callers were told; no row where every call has a backtrace.';
COMMENT ON COLUMN _caller_sentence.sentence IS 'The sentence';
