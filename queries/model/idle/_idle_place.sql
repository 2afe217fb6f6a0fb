/* parameters = ["part"] */
-- The position of a part of the idle time in a budget, after gpu_idle_ns.
3 + list_position(
    ['launch', 'sync', 'copy', 'allocation', 'dependency', 'profiler', 'start-up and end', 'unknown'], part
);
