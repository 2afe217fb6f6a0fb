/*
title = "One rank's GPU works longer, and the others wait for it"
family = "ranks"
is_cross_rank = true
overlaps = true
meaning = """
The same step keeps one GPU busy longer, so it arrives last at the collectives; the others spin in their kernels
until then."""
action = """
Compare its kernels with another rank's: nsys-insight top of both. More kernels or other shapes: distribute the work
evenly (sequence lengths, layers, experts). The same kernels, only slower: check clocks, power and temperature of
that GPU."""
caveat = """
The work has to be on one rank, as the last stage of a pipeline has the loss."""
report = "ranks"
*/
SELECT
    late_ns / steps / $tokens AS recoverable_ns,
    100 * late_ns / wall_ns AS wall_pct,
    names AS place,
    'late in ' || text || ': '
        || 'its GPU is busy ' || format('{:.2g}', busy_ratio) || ' times as long'
        || '; ' || others AS evidence
FROM _late_run
WHERE cause = 'gpu'
