/* parameters = ["has_chains", "calls", "placed", "which"] */
-- What an answer by caller says about how callers were found; no row if every call has a backtrace.
SELECT
    'this trace has no backtraces of CUDA calls: places are identified by NVTX ranges and by the calls before and '
    'after; for functions capture with '
    || '--cudabacktrace=all --sample=process-tree, which makes a launch call take twice as long, in Python more; '
        'all:10000 records backtraces only for calls of 10 µs and more' AS sentence
WHERE NOT has_chains
UNION ALL
SELECT format('{:,}', calls - placed) || ' of ' || format('{:,}', calls) || ' ' || which
    || ' have no backtrace that names code of the program; nsys records backtraces for the kinds and durations of '
        'calls that --cudabacktrace names'
WHERE has_chains AND placed < calls;
