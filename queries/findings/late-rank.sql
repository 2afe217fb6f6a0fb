/*
title = "One rank is late, and the others wait for it"
family = "ranks"
is_cross_rank = true
overlaps = true
meaning = """
A collective begins when the last rank arrives; until then the others spin in its kernel, which looks like
communication."""
action = """
Look at that rank alone, and at what its host does there: late data, logging, garbage collection, a shared CPU core.
Overlapping communication with computation would not help."""
caveat = """
It does what only one rank can do, such as writing a checkpoint; then let the others continue meanwhile."""
report = "ranks"
*/
SELECT
    late_ns / steps / $tokens AS recoverable_ns,
    100 * late_ns / wall_ns AS wall_pct,
    names || coalesce(': ' || place, '') AS place,
    'late in ' || text || ': '
        || CASE cause
            WHEN 'host' THEN coalesce(host, 'its host') || coalesce(' in ' || place, '')
            WHEN 'both' THEN 'its GPU is busy ' || format('{:.2g}', busy_ratio) || ' times as long, and is idle longer'
            ELSE 'the trace does not say why'
        END
        || '; ' || others AS evidence
FROM _late_run
WHERE cause IS DISTINCT FROM 'gpu'
