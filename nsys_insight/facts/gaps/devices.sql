-- How many GPUs the trace has contexts on, in scope or not.
SELECT count(DISTINCT device_id) AS count FROM _contexts
