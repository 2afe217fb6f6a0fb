-- What the steps of the phases hold, and which CUDA graphs they launch. A step is done when its range has ended and so has all
-- that was launched in it.
INSERT INTO facts.phase_steps BY NAME
WITH graph_ids AS (
    SELECT correlation_id, graph_exec_id AS graph_id FROM graph_launches WHERE process_id = $process
    UNION
    SELECT correlation_id, graph_node_id >> 32 FROM _kernel_times WHERE process_id = $process AND graph_node_id > 0
),
graphs AS (
    SELECT piece, list(DISTINCT graph_id ORDER BY graph_id) AS ids
    FROM (SELECT DISTINCT piece, correlation_id FROM internal.step_owned WHERE call_group = 'graph launch')
    JOIN graph_ids USING (correlation_id)
    GROUP BY piece
)
SELECT
    row_number() OVER (ORDER BY t.piece) - 1 AS phase_step,
    r.phase, r.batch_size, r.prompt_tokens,
    CASE WHEN len(g.ids) > 2 THEN len(g.ids) || ' graphs' ELSE 'graph ' || array_to_string(g.ids, ', ') END AS graph,
    r.start_ns AS host_start_ns, r.end_ns AS host_end_ns,
    greatest(r.end_ns, coalesce(w.done_ns, r.end_ns)) AS done_ns,
    t.* EXCLUDE (piece, is_step, is_open, ops, gpu_ns, host_start_ns, host_end_ns)
FROM internal.step_totals AS t
JOIN internal.step_ranges AS r ON r.start_ns = t.host_start_ns
LEFT JOIN graphs AS g USING (piece)
LEFT JOIN internal.step_work AS w USING (piece)
WHERE t.is_step
