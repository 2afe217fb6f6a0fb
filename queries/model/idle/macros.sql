-- The cause of idle time as an enum: words take several times as long to write and compare. Used only with literals,
-- which are cast once. The words are those of `facts.idle_time` and `_idle_of`. They are in alphabetical order, because
-- `idle_charges` puts the causes of one instant in that order.
CREATE MACRO idle_host(word) AS word::ENUM (
    'API calls', 'CPU work', 'MPI calls', 'after the last operation', 'allocation', 'before the first operation',
    'blocking copies', 'late', 'launch call', 'launch call in progress',
    'launch latency', 'launched before', 'managed memory', 'not in the trace', 'profiler', 'same launch call',
    'staged copy', 'stream wait', 'sync calls'
);
