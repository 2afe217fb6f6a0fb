/*
title = "What a step is made of, and what replaces it"
topic = "kernels"
place = 2
question = "What are the operations of a step, are they efficient at this size, and what would replace them?"
examples = ["", "--format markdown"]
main = ["step_pct", "total_ns", "calls", "name", "judgment", "replaced_by", "saving_ns"]
details = ["library", "domain", "before", "after", "read_back_pct", "idle_before_ns", "host_ns", "size_bytes"]
description = """
Names the operations of a step by the catalog of constructs: kernels of one construct are one row, a kernel that the
catalog does not have is a row under its own name. Counts and times are means over the steady steps, or over the first
of them in a long trace; of the whole scope where no steps were found. efficient: the entry of the catalog has a
condition for that, and most of the row's time meets it. replaceable: the condition of a replacement holds, or for most
of the row's time that of a kind of operations, such as those as short as an operation can be. Neither: the trace does
not show whether the operation is efficient."""
reading = """
replaceable rows first: diagnose has the cure for each, if it saves 1% of a step. A step of which most is efficient has
little left to gain on the GPU. For rows without a judgment, see classify-kernels, or profile them with ncu."""
empty = "No GPU work is recorded in this scope"
advice = "if the program did use the GPU, capture with: nsys profile -t cuda"

[columns]
name = "The construct; of a kernel that the catalog does not have, its base name"
step_pct = "total_ns as a share of the step"
total_ns = "Sum of the durations per step"
calls = "Executions per step"
avg_ns = "Mean duration"
shapes = "Launch shapes and names"
device_id = "CUDA device number within the process"
judgment = "efficient, replaceable; NULL where the trace does not show it"
replaced_by = "What replaces it in any framework; diagnose has the text for the program's"
saving_low_ns = "What the replacement saves per step, at least; NULL where it replaces several rows"
saving_ns = "What the replacement saves per step, at most; NULL where it replaces several rows"
is_named = "Whether the catalog has it"
library = "The library or framework that has it; of other kernels, where they come from"
domain = "The file of its entry in the catalog"
idle_before_ns = "Time per step in which the GPU was idle right before it"
host_ns = "Duration of its calls per step"
size_bytes = "Mean size of a copy or memset"
read_back_pct = "Share of its executions that a copy to the host follows"
before = "What runs before it on the stream in most cases"
after = "What runs after it on the stream in most cases"

[notes]
coverage.text = """
the catalog names {named_pct} of the GPU time and judges {judged_pct} of that; {hand_written_pct} is in hand-written
kernels"""
coverage.query = """
SELECT named_pct, coalesce(judged_pct, 0) AS judged_pct, hand_written_pct
FROM construct_coverage WHERE EXISTS (FROM answer)"""

whole.use = "no_steady_steps"
graphs.use = "whole_graphs"
*/
WITH replaced AS (
    SELECT process_id, construct, sum(saving_low_ns) AS saving_low_ns, sum(saving_ns) AS saving_ns,
        any_value(map_extract_value(fix, 'any')) AS replaced_by
    FROM step_replacements
    GROUP BY process_id, construct
),
constructs_of_step AS (
    SELECT
        process_id, device_id, coalesce(construct, kernel_base_name(name)) AS name, construct,
        any_value(coalesce(library, provenance)) AS library, any_value(domain) AS domain,
        sum(step_pct) AS step_pct, sum(total_ns) AS total_ns, sum(calls) AS calls,
        sum(avg_ns * calls) / sum(calls) AS avg_ns, count(*) AS shapes,
        CASE
            WHEN bool_or(judgment = 'replaceable' AND judged_by = construct) THEN 'replaceable'
            WHEN sum(total_ns) FILTER (judgment = 'replaceable') >= 0.5 * sum(total_ns) THEN 'replaceable'
            WHEN sum(total_ns) FILTER (judgment = 'efficient') >= 0.8 * sum(total_ns) THEN 'efficient'
        END AS judgment,
        coalesce(
            any_value(judged_by) FILTER (judgment = 'replaceable' AND judged_by = construct),
            max_by(judged_by, total_ns) FILTER (judgment = 'replaceable')
        ) AS replaced_with,
        sum(idle_before_ns) AS idle_before_ns, sum(host_ns) AS host_ns,
        sum(size_bytes * calls) / sum(calls) FILTER (size_bytes IS NOT NULL) AS size_bytes,
        sum(read_back_pct * calls) / sum(calls) AS read_back_pct,
        max_by(before, total_ns) AS before, max_by(after, total_ns) AS after
    FROM step_operations
    -- Calls are rows only where the catalog names them.
    WHERE kind <> 'call' OR construct IS NOT NULL
    GROUP BY process_id, device_id, coalesce(construct, kernel_base_name(name)), construct
)
SELECT
    n.name, n.step_pct, n.total_ns, n.calls, n.avg_ns, n.shapes, n.device_id, n.judgment,
    r.replaced_by, if(r.construct = n.construct, r.saving_low_ns, NULL) AS saving_low_ns,
    if(r.construct = n.construct, r.saving_ns, NULL) AS saving_ns,
    n.construct IS NOT NULL AS is_named, n.library, n.domain,
    n.idle_before_ns, n.host_ns, n.size_bytes, n.read_back_pct, n.before, n.after
FROM constructs_of_step AS n
LEFT JOIN replaced AS r
    ON r.process_id = n.process_id AND r.construct = n.replaced_with AND n.judgment = 'replaceable'
ORDER BY n.total_ns DESC, n.name, n.device_id
