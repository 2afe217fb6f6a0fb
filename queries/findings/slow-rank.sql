/*
title = "A rank's GPU works longer than the others', which wait for it"
family = "ranks"
of_run = true
overlaps = true
meaning = """
The same step keeps one GPU busy longer, so it comes last to the collectives; the others spin in their kernels until then."""
action = """
Compare its kernels with another rank's: nsys-insight top of both. More kernels, or other shapes: deal the work out evenly (sequence
lengths, layers, experts). The same ones, only slower: look at clocks, power and temperature of that GPU."""
caveat = """
The work has to lie on one rank, as a pipeline's last stage has the loss."""
report = "ranks"
*/
SELECT
    late_ns / steps / $tokens AS recoverable_ns,
    100 * late_ns / wall_ns AS wall_pct,
    names AS place,
    'late in ' || text || ': '
        || 'its GPU works ' || format('{:.2g}', busy_ratio) || ' times as long'
        || '; ' || others AS evidence
FROM _late_run
WHERE cause = 'gpu'
