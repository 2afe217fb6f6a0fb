-- An operation on several devices counts as its mean over them. Less time of the GPU shortens a step only down to what
-- the host takes; where launches are gone, the host takes less time too, and the idle time before them is gone. High:
-- all of that idle time. Low: half of it, because the profiler makes a launch take up to twice as long.
INSERT INTO facts.step_replacements BY NAME
WITH devices AS (
    SELECT process_id, count(DISTINCT device_id) AS device_count FROM internal.unjudged_operations GROUP BY process_id
),
replaceable AS (
    SELECT
        o.process_id, e.construct, e.replacement, o.device_id,
        sum(o.calls) AS calls, sum(o.total_ns) AS total_ns,
        sum(o.idle_before_ns) AS idle_ns, sum(o.host_ns) AS host_ns,
        -- A launch call takes at most some 50 µs: a longer wait before it is for other work of the host.
        sum(least(o.idle_before_ns, 50_000 * o.calls) * (1 - e.launches / o.calls)) AS gone_idle_ns,
        sum((o.total_ns - e.low_ns) * e.launches / o.calls) AS kept_high_ns,
        sum((o.total_ns - e.high_ns) * e.launches / o.calls) AS kept_low_ns,
        sum(o.total_ns - e.low_ns) - kept_high_ns AS gone_high_ns,
        sum(o.total_ns - e.high_ns) - kept_low_ns AS gone_low_ns,
        sum(e.low_ns) AS low_ns, sum(e.high_ns) AS high_ns, sum(e.launches) AS launches, count(*) AS shapes,
        max(e.saving_low_ns) AS saving_low_ns, max(e.saving_high_ns) AS saving_high_ns,
        max_by(o.row_number, (o.total_ns, -o.row_number)) AS largest
    FROM internal.chosen_estimates AS e
    JOIN internal.unjudged_operations AS o USING (row_number)
    GROUP BY o.process_id, e.construct, e.replacement, o.device_id
),
included AS (
    SELECT
        i.construct, i.replacement, o.process_id, o.device_id, sum(o.calls) AS calls, sum(o.total_ns) AS total_ns,
        sum(o.idle_before_ns) AS idle_ns, sum(o.host_ns) AS host_ns,
        string_agg(DISTINCT o.construct, ', ' ORDER BY o.construct) AS names
    FROM internal.included_operations AS i
    JOIN internal.unjudged_operations AS o USING (row_number)
    GROUP BY ALL
),
totals AS (
    SELECT
        w.process_id, w.construct, w.replacement,
        max_by(w.device_id, w.total_ns) AS device_id, max_by(w.largest, w.total_ns) AS largest,
        max(w.shapes) AS shapes, any_value(i.names) AS included,
        sum(w.calls) / any_value(d.device_count) AS calls, sum(w.total_ns) / any_value(d.device_count) AS total_ns,
        coalesce(sum(i.calls), 0) / any_value(d.device_count) AS included_calls,
        coalesce(sum(i.total_ns), 0) / any_value(d.device_count) AS included_ns,
        (sum(w.idle_ns) + coalesce(sum(i.idle_ns), 0)) / any_value(d.device_count) AS idle_ns,
        (coalesce(sum(w.host_ns), 0) + coalesce(sum(i.host_ns), 0)) / any_value(d.device_count) AS host_ns,
        (sum(w.gone_idle_ns) + coalesce(sum(i.idle_ns), 0)) / any_value(d.device_count) AS gone_idle_ns,
        sum(w.kept_high_ns) / any_value(d.device_count) AS kept_high_ns,
        sum(w.kept_low_ns) / any_value(d.device_count) AS kept_low_ns,
        sum(w.gone_high_ns) / any_value(d.device_count) AS gone_high_ns,
        sum(w.gone_low_ns) / any_value(d.device_count) AS gone_low_ns,
        sum(w.low_ns) / any_value(d.device_count) AS estimate_low_ns,
        sum(w.high_ns) / any_value(d.device_count) AS estimate_high_ns,
        sum(w.launches) / any_value(d.device_count) AS launches,
        max(w.saving_low_ns) AS own_saving_low_ns, max(w.saving_high_ns) AS own_saving_high_ns
    FROM replaceable AS w
    JOIN devices AS d USING (process_id)
    LEFT JOIN included AS i USING (process_id, construct, replacement, device_id)
    GROUP BY w.process_id, w.construct, w.replacement
),
savings AS (
    SELECT
        s.*, t.wall_ns, least(s.kept_high_ns, limits.high_limit_ns) < s.kept_high_ns AS is_limited,
        least(
            coalesce(
                s.own_saving_high_ns,
                least(s.kept_high_ns, limits.high_limit_ns) + s.gone_high_ns + s.included_ns + s.gone_idle_ns
            ),
            t.wall_ns
        ) AS saving_ns,
        greatest(
            least(
                coalesce(
                    s.own_saving_low_ns,
                    least(s.kept_low_ns, limits.low_limit_ns) + s.gone_low_ns + s.included_ns + s.gone_idle_ns / 2
                ),
                saving_ns
            ),
            0
        ) AS saving_low_ns
    FROM totals AS s, _step_totals AS t, _step_limits AS limits
)
SELECT
    s.process_id, s.construct, c.domain, c.what, c.library, s.replacement, e.title, e.evidence, e.fix, e.skip_if,
    e.effort, e.numerics, e.source, e.explains, e.blocks, e.reported_by, s.device_id,
    coalesce(o.base_name, o.name) AS kernel,
    s.calls, if(s.total_ns = 0, s.host_ns, s.total_ns) / s.calls AS avg_ns, s.total_ns,
    -- Kernels that overlap take longer together than the step.
    least(100, 100 * s.total_ns / s.wall_ns) AS total_pct,
    s.included_calls, s.included_ns, s.included, s.calls + s.included_calls AS all_calls,
    s.total_ns + s.included_ns AS all_ns, least(100, 100 * (s.total_ns + s.included_ns) / s.wall_ns) AS all_pct,
    s.idle_ns, s.host_ns, s.shapes,
    o.size_bytes, o.bytes_per_s, o.blocks_count, o.threads_per_block,
    o.registers_per_thread, o.static_shared_bytes, o.dynamic_shared_bytes,
    o.blocks_per_sm, o.blocks_without_shared, o.occupancy_pct, o.waves_per_sm,
    o.sm_count, o.read_back_bytes, o.before, o.after, o.devices,
    o.step_busy_pct,
    CASE WHEN s.own_saving_high_ns IS NULL THEN greatest(s.estimate_low_ns, 0) END AS estimate_low_ns,
    CASE WHEN s.own_saving_high_ns IS NULL THEN greatest(s.estimate_high_ns, 0) END AS estimate_high_ns,
    s.launches, s.saving_low_ns, s.saving_ns,
    CASE WHEN s.own_saving_high_ns IS NULL AND s.is_limited THEN 'the host' END AS bounded_by
FROM savings AS s
JOIN construct_replacements() AS e USING (construct, replacement)
JOIN constructs() AS c USING (construct)
JOIN internal.unjudged_operations AS o ON o.row_number = s.largest
