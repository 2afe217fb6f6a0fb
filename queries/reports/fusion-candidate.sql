/*
title = "The kernels of a fusion candidate"
topic = "kernels"
place = 8
question = "Which kernels are in one of the chains that fusion lists, and how is its saving calculated?"
examples = ["--candidate 1", "--candidate 2 --format markdown"]
page = false
main = ["position", "operation", "duration_ns", "gap_ns", "host_ns", "api_ns", "role", "name"]
description = """
The kernels of one candidate of the report fusion in order, averaged over the occurrences of the chain in the
typical step, and where the first of them is launched. The notes say how the saving is calculated."""
reading = """
Kernels with a gap longer than their duration wait for the host: host_ns is what counts. A kernel that takes longer
than the others reads or writes more, or has a reduction: the fused kernel takes at least as long. Kernels that stay
are not changed: the fused kernel comes after the last of them."""
empty = "There is no such candidate: nsys-insight fusion lists the candidates"

[params.candidate]
default = 1
least = 1
noun = "fusion candidate"
names = "SELECT candidate FROM fusion_candidates ORDER BY 1"
help = "The candidate's number in fusion"

[columns]
position = "Place in the chain, from 1"
role = "fused; or stays, for one that the chain skips"
operation = "What it computes, by its name"
name = "The kernel"
duration_ns = "Mean duration"
gap_ns = "From the end of the previous operation on its stream to its start"
host_ns = "From its launch call to what the host does next for the GPU; NULL in a graph"
api_ns = "The launch call itself"
grid = "Blocks in the grid, in the first occurrence of the chain"
block = "Threads of a block"
shapes = "How many different grids and blocks it has over the occurrences of the chain"
nvtx_path = "The NVTX ranges it is launched in, in the first occurrence"

[notes]
what.text = """
candidate {candidate_id}, {pattern}: {verdict}<, {reason}>; {kernel_count:kernel}, {per_step} × a step< ({per_layer} ×
in each of {layers:layer})><; {remedy}>"""
what.query = """
SELECT
    candidate AS candidate_id, coalesce(pattern, 'unrecognized') AS pattern, verdict, reason, kernel_count, per_step,
    per_layer, layers, remedy
FROM fusion_candidates WHERE candidate = $candidate"""

launches.text = [[
    """{?lacks_calls}launch calls: they are not in the trace, so what fewer of them would save is unknown""",
    """launch calls: ({kernel_count} - 1) × {per_step} = {kernels_saved} fewer kernels, {launches_saved} fewer launch
    calls; host time {host_low_ns} to {host_high_ns} per step""",
]]
launches.query = """
SELECT
    EXISTS (FROM _unrecorded WHERE what = 'calls') AS lacks_calls, kernel_count, per_step, kernels_saved,
    launches_saved, host_low_ns, host_high_ns
FROM fusion_candidates WHERE candidate = $candidate"""

kernels.text = """
GPU time: of {chain_ns} per step, {kernel_low_ns} to {kernel_high_ns} saved; a kernel costs at least {fixed_ns};
{gap_ns} between them"""
kernels.query = """
SELECT chain_ns, kernel_low_ns, kernel_high_ns, fixed_ns, gap_ns
FROM fusion_candidates, fusion_step WHERE candidate = $candidate"""

wall.text = """
wall time: replayed with the chain fused, the step takes {most_ns} to {least_ns} instead of {replayed_ns}:
{saved_low_ns} to {saved_high_ns} saved"""
wall.query = """
SELECT
    replayed_ns - saved_low_ns AS most_ns, replayed_ns - saved_high_ns AS least_ns, replayed_ns, saved_low_ns,
    saved_high_ns
FROM fusion_candidates, fusion_step WHERE candidate = $candidate"""
*/
SELECT
    f.position,
    f.role,
    f.operation,
    n.name,
    f.duration_ns,
    f.gap_ns,
    f.host_ns,
    f.api_ns,
    f.grid,
    f.block,
    f.shapes,
    k.nvtx_path
FROM fusion_kernels AS f
LEFT JOIN kernel_names AS n ON n.name_id = f.name_id
LEFT JOIN (
    SELECT process_id, correlation_id, any_value(nvtx_path) AS nvtx_path
    FROM kernels_in_nvtx
    WHERE correlation_id IN (SELECT correlation_id FROM fusion_kernels WHERE candidate = $candidate)
    GROUP BY ALL
) AS k ON k.process_id = f.process_id AND k.correlation_id = f.correlation_id
WHERE f.candidate = $candidate
ORDER BY f.position
