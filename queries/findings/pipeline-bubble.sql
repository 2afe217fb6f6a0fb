/*
title = "The stages of a pipeline wait for each other"
family = "pipeline"
of_run = true
overlaps = true
meaning = """
A stage has nothing to do until the first microbatch has come to it, and after the last one has left it, in every step alike. No rank
is late for that."""
action = """
More microbatches a step, or several smaller stages on a rank (interleaved), so that less of a step is start and end; stages that
take equally long."""
caveat = """
The microbatches would be too small to keep a GPU busy."""
report = "ranks"

[params.least_pct]
default = 5.0
help = "A rank waits for this share of the usual step at least: less is no pipeline's fault (a choice)"
*/
SELECT
    NULL::DOUBLE AS recoverable_ns,
    bubble_pct AS wall_pct,
    stages || ' stages' AS place,
    pipeline AS evidence
FROM rank_run
WHERE bubble_pct >= $least_pct
