/*
title = "The kernels of a fusion candidate"
topic = "kernels"
place = 8
question = "Which kernels are in one of the chains that fusion lists, and how is its gain calculated?"
page = false
main = ["position", "operation", "duration_ns", "gap_ns", "host_ns", "api_ns", "role", "name"]
description = """
The kernels of one candidate of the report fusion in their order, with means over the times that the chain comes in the typical
step, and where the first of them is launched. The notes say how its gain is reckoned."""
reading = """
Kernels whose gap is longer than they run are waiting for the host: what counts is host_ns. A kernel that takes longer than the
others reads or writes more, or has a reduction: it bounds the fused kernel from below. Kernels that stay are not touched: the
fused kernel comes after the last of them."""
empty = "There is no such candidate: nsys-insight fusion lists them"

[params.candidate]
default = 1
least = 1
help = "Which one: its rank in fusion"

[columns]
position = "Place in the chain, from 1"
role = "fused; or stays, for one that the chain goes around"
operation = "What it computes, by its name"
name = "The kernel"
duration_ns = "How long it runs"
gap_ns = "From the end of the operation before it on its stream to its start"
host_ns = "From its launch call to what the host does next for the GPU; NULL in a graph"
api_ns = "The launch call itself"
grid = "Blocks, the first time that the chain comes"
block = "Threads of a block"
shapes = "How many different grids and blocks it has in the times that the chain comes"
nvtx_path = "The NVTX ranges it is launched in, the first time"

[notes]
what = """
SELECT 'candidate ' || candidate || ', ' || coalesce(pattern, 'novel') || ': ' || verdict || coalesce(', ' || reason, '') || '; ' || kernel_count || ' kernels, ' || per_step || ' × a step'
    || coalesce(' (' || round(per_layer, 2) || ' × in each of ' || layers || ' layers)', '') || coalesce('; ' || remedy, '')
FROM fusion_candidates WHERE candidate = $candidate"""
launches = """
SELECT 'launch calls: (' || kernel_count || ' - 1) × ' || per_step || ' = ' || kernels_saved || ' kernels fewer, ' || launches_saved || ' launch calls; host time ' || round(host_low_ns / 1e3, 1) || ' to ' || round(host_high_ns / 1e3, 1) || ' µs a step'
FROM fusion_candidates WHERE candidate = $candidate AND NOT EXISTS (FROM _unrecorded WHERE what = 'calls')
UNION ALL
SELECT 'launch calls: they are not in the trace, so what fewer of them save is not known' FROM fusion_candidates
WHERE candidate = $candidate AND EXISTS (FROM _unrecorded WHERE what = 'calls')"""
kernels = """
SELECT 'GPU time: of ' || round(chain_ns / 1e3, 1) || ' µs a step, ' || round(kernel_low_ns / 1e3, 1) || ' to ' || round(kernel_high_ns / 1e3, 1) || ' µs; a kernel costs ' || round(fixed_ns / 1e3, 2) || ' µs at least; '
    || round(gap_ns / 1e3, 1) || ' µs between them'
FROM fusion_candidates, fusion_step WHERE candidate = $candidate"""
wall = """
SELECT 'wall: played again with the chain fused, the step lasts ' || round((replayed_ns - saved_low_ns) / 1e3, 1) || ' to ' || round((replayed_ns - saved_high_ns) / 1e3, 1) || ' µs instead of ' || round(replayed_ns / 1e3, 1)
    || ' µs: ' || round(saved_low_ns / 1e3, 1) || ' to ' || round(saved_high_ns / 1e3, 1) || ' µs saved'
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
