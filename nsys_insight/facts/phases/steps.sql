-- The contents of the steps of the phases, and the CUDA graphs that they launch. A step is done when its range has
-- ended and everything that was launched in it is done.
INSERT INTO facts.phase_steps BY NAME
-- The graph of each launch call.
WITH graph_ids AS (
    SELECT correlation_id, graph_exec_id AS graph_id FROM graph_launches WHERE process_id = $process
    UNION
    SELECT correlation_id, graph_node_id >> 32 FROM kernel_events WHERE process_id = $process AND graph_node_id > 0
),
-- The graphs that each step launched.
graphs AS (
    SELECT piece, list(DISTINCT graph_id ORDER BY graph_id) AS ids
    FROM (
        SELECT DISTINCT p.piece, o.correlation_id
        FROM internal.step_launched AS o
        ASOF JOIN internal.phase_pieces AS p ON p.host_start_ns <= o.call_ns
        WHERE o.call_group = 'graph launch' AND o.call_ns < p.host_end_ns
    )
    JOIN graph_ids USING (correlation_id)
    GROUP BY piece
),
totals AS (
    SELECT t.* EXCLUDE (is_step, thread_id, is_open, ops, gpu_ns), w.done_ns
    FROM internal.step_totals AS t LEFT JOIN internal.step_work AS w USING (piece)
)
SELECT
    row_number() OVER (ORDER BY t.piece) - 1 AS phase_step,
    r.phase, r.batch_size, r.prompt_tokens,
    CASE WHEN len(g.ids) > 2 THEN len(g.ids) || ' graphs' ELSE 'graph ' || array_to_string(g.ids, ', ') END AS graph,
    r.start_ns AS host_start_ns, r.end_ns AS host_end_ns,
    greatest(r.end_ns, coalesce(t.done_ns, r.end_ns)) AS done_ns,
    $thread::BIGINT AS thread_id,
    t.* EXCLUDE (piece, host_start_ns, host_end_ns, done_ns)
FROM totals AS t
JOIN internal.step_ranges AS r ON r.start_ns = t.host_start_ns
LEFT JOIN graphs AS g USING (piece)
