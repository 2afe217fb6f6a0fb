/*
title = "The stages of a pipeline wait for each other"
family = "pipeline"
is_cross_rank = true
overlaps = true
meaning = """
A stage has nothing to do until the first microbatch reaches it and after the last one has left it, in every step. No
rank is late."""
action = """
Use more microbatches per step, or several smaller stages per rank (interleaved), so that filling and draining take a
smaller part of the step; balance the stages."""
caveat = """
The microbatches would be too small to keep a GPU busy."""
report = "ranks"

[params.least_pct]
default = 5.0
help = "Smallest share of the usual step that a rank waits (a choice)"
*/
SELECT
    NULL::DOUBLE AS recoverable_ns,
    bubble_pct AS wall_pct,
    stages || ' stages' AS place,
    pipeline AS evidence
FROM rank_run
WHERE bubble_pct >= $least_pct
