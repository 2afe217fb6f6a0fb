-- The kernels of a graph share its launch call. The call is compared with the first kernel.
UPDATE internal.step_work AS w
SET
    launches = w.launches + g.launches, graph_launches = g.launches,
    launch_queue_ns = coalesce(w.launch_queue_ns, 0) + g.launch_queue_ns,
    queue_ns = coalesce(w.queue_ns, 0) + g.queue_ns, ahead_calls = w.ahead_calls + g.ahead_calls
FROM (
    SELECT
        piece, count(*) AS launches, sum(start_ns - call_ns) AS launch_queue_ns,
        sum(greatest(start_ns - returned_ns, 0)) AS queue_ns,
        count(*) FILTER (start_ns >= returned_ns + 10000) AS ahead_calls
    FROM (
        SELECT piece, min(start_ns) AS start_ns, min(call_ns) AS call_ns, min(returned_ns) AS returned_ns
        FROM internal.step_owned WHERE kind IN ('kernel', 'graph') AND call_group = 'graph launch'
        GROUP BY piece, correlation_id
    )
    WHERE start_ns >= call_ns
    GROUP BY piece
) AS g
WHERE g.piece = w.piece
