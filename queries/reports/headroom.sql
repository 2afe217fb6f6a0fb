/*
title = "Kernel headroom (from Nsight Compute)"
topic = "kernels"
place = 7
question = "How much time could kernels save, based on Nsight Compute measurements?"
examples = ["", "--tokens 128"]
main = ["name", "recoverable_ns", "total_ns", "kernel_time_pct", "calls", "bound", "ceiling_used_pct", "ceiling"]
description = """
Combines what Nsight Compute measured (ncu import) with the time that the same kernels take in the trace.
ceiling_used_pct is how close a kernel is to what is attainable on the busier of its two roofs: SM throughput of
sm_ceiling, DRAM throughput of dram_ceiling. recoverable_ns is the time that it would save there with the same work;
no kernel is assumed to become shorter than the shortest one in the trace. Both savings are given only where name,
grid and block agree: a larger grid of the same kernel uses the GPU differently. ncu_saving_ns applies the largest
saving that one of ncu's own rules estimates for the launch. The two are different estimates of the same time: do
not add them. match says what agrees between trace and ncu."""
reading = """
Start with the largest recoverable_ns whose match has name, grid and block. Little recoverable time at a high
ceiling_used_pct: the kernel is near its limit, and only less work helps. No recoverable_ns: the launch that ncu
profiled had another grid, so profile this one (ncu plan). Short kernels that do not fill the GPU should be fused
rather than tuned. Next: ncu report."""
empty = """\
No kernel that ncu profiled is in this trace: nsys-insight ncu plan writes the command that profiles its hot \
kernels, and ncu import reads the result"""

[params.tokens]
type = "integer"
least = 1
help = "Tokens or steps in scope, for the columns per token"

[params.sm_ceiling]
default = 80.0
help = "SM throughput at which a kernel counts as optimized, in % of the peak"

[params.dram_ceiling]
default = 85.0
help = "DRAM throughput at which a kernel counts as optimized, in % of the peak"

[columns]
name = "The kernel"
grid = "Blocks in the grid, x × y × z"
block = "Threads in a block, x × y × z"
calls = "Executions in scope"
total_ns = "Sum of their durations in the trace"
kernel_time_pct = "Share of all kernel time in scope"
bound = """\
What bounds it, by ncu: compute, memory, latency, balanced, unknown; NULL where ncu profiled it with another grid or \
block"""
ceiling = "The roof that it is nearer to: SM or DRAM"
ceiling_used_pct = "Throughput as a share of that ceiling"
recoverable_ns = "Time that it would save at that ceiling"
ncu_rule = "The ncu rule with the largest estimated saving"
ncu_saving_pct = "The saving that this rule estimates, as a share of a launch"
ncu_saving_ns = "Saving that this rule estimates, applied to total_ns"
total_per_token_ns = "total_ns per token; NULL without tokens"
recoverable_per_token_ns = "recoverable_ns per token; NULL without tokens"
launches_profiled = "Launches of the kernel that ncu profiled"
match = """\
What agrees between trace and ncu, from best to worst: name, grid, block, order; name, grid, block; function, grid, \
block; name; function"""

[notes]
coverage.text = "the kernels that ncu profiled take {kernel_time_pct} of kernel time; the others are not in this table"
coverage.query = "SELECT sum(kernel_time_pct) AS kernel_time_pct FROM answer HAVING sum(kernel_time_pct) < 99.95"
*/
-- Without ncu measurements, no kernel of the trace is read: every diagnosis runs this report.
WITH kernel_shapes AS (
    SELECT
        name_id,
        grid_x || 'x' || grid_y || 'x' || grid_z AS grid,
        block_x || 'x' || block_y || 'x' || block_z AS block,
        sum(calls)::BIGINT AS calls,
        sum(total_ns)::BIGINT AS total_ns
    FROM (
        SELECT
            name_id, grid_x, grid_y, grid_z, block_x, block_y, block_z, count(*) AS calls,
            sum(duration_ns)::BIGINT AS total_ns
        FROM kernel_events
        WHERE EXISTS (FROM ncu_metrics)
        GROUP BY ALL
    )
    GROUP BY ALL
),
shortest_kernel AS (
    SELECT min(duration_ns) AS floor_ns FROM kernel_events WHERE duration_ns > 0 AND EXISTS (FROM ncu_metrics)
),
ncu_estimates AS (
    SELECT launch, rule, speedup_pct,
        row_number() OVER (PARTITION BY launch ORDER BY speedup_pct DESC, rule, section) AS place
    FROM ncu_rules
    WHERE type = 'OPT' AND speedup_type = 'global' AND rule <> 'MemoryL2Compression'
),
ncu_means AS (
    SELECT
        m.name_id, m.grid, m.block,
        min(m.match) AS match,
        count(*) AS launches_profiled,
        avg(k.sm_pct) AS sm_pct,
        avg(k.dram_pct) AS dram_pct,
        avg(coalesce(r.speedup_pct, 0)) AS saving_pct,
        max(r.rule) AS rule,
        bool_and(m.match IN ('name, grid, block, order', 'name, grid, block')) AS is_same
    FROM ncu_matches AS m
    JOIN _ncu_columns() AS k USING (launch)
    LEFT JOIN ncu_estimates AS r ON r.launch = m.launch AND r.place = 1
    GROUP BY m.name_id, m.grid, m.block
),
shapes_with_ceiling AS (
    SELECT
        m.*, c.calls, c.total_ns,
        CASE
            WHEN m.is_same
                THEN least(greatest(m.sm_pct / nullif($sm_ceiling, 0), m.dram_pct / nullif($dram_ceiling, 0)), 1.0)
        END AS used_ratio,
        m.dram_pct / nullif($dram_ceiling, 0) > m.sm_pct / nullif($sm_ceiling, 0) AS is_dram
    FROM ncu_means AS m
    JOIN kernel_shapes AS c ON c.name_id = m.name_id AND c.grid = m.grid AND c.block = m.block
),
shapes_with_saving AS (
    SELECT
        u.*,
        greatest(
            u.total_ns - u.calls * greatest(u.total_ns / u.calls * u.used_ratio, s.floor_ns), 0
        )::BIGINT AS recoverable_ns
    FROM shapes_with_ceiling AS u, shortest_kernel AS s
)
SELECT
    coalesce(s.name, '(no name)') AS name,
    g.grid,
    g.block,
    g.calls,
    g.total_ns,
    100.0 * g.total_ns / nullif((SELECT sum(total_ns) FROM kernel_shapes), 0) AS kernel_time_pct,
    b.bound,
    CASE WHEN g.used_ratio IS NOT NULL THEN CASE WHEN g.is_dram THEN 'DRAM' ELSE 'SM' END END AS ceiling,
    100 * g.used_ratio AS ceiling_used_pct,
    CASE WHEN g.used_ratio IS NOT NULL THEN g.recoverable_ns END AS recoverable_ns,
    CASE WHEN g.is_same THEN g.rule END AS ncu_rule,
    CASE WHEN g.is_same AND g.rule IS NOT NULL THEN g.saving_pct END AS ncu_saving_pct,
    CASE WHEN g.is_same AND g.rule IS NOT NULL THEN (g.total_ns * g.saving_pct / 100)::BIGINT END AS ncu_saving_ns,
    g.total_ns / $tokens::DOUBLE AS total_per_token_ns,
    CASE WHEN g.used_ratio IS NOT NULL THEN g.recoverable_ns / $tokens::DOUBLE END AS recoverable_per_token_ns,
    g.launches_profiled,
    g.match
FROM shapes_with_saving AS g
LEFT JOIN strings AS s USING (name_id)
LEFT JOIN _ncu_shapes AS b ON b.name_id = g.name_id
    AND b.grid_x || 'x' || b.grid_y || 'x' || b.grid_z = g.grid
    AND b.block_x || 'x' || b.block_y || 'x' || b.block_z = g.block
ORDER BY recoverable_ns DESC NULLS LAST, g.total_ns DESC, name, g.grid, g.block
