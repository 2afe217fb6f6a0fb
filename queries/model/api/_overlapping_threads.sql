CREATE VIEW _overlapping_threads AS
FROM facts.overlapping_threads;

COMMENT ON VIEW _overlapping_threads IS
    'Threads of which an API call may begin before the one before it has ended: those to look at for calls inside '
    'others.';
COMMENT ON COLUMN _overlapping_threads.thread IS 'The thread as nsys packs it, with its process: `globalTid`';
