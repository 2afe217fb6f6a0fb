CREATE VIEW _scheduling AS
SELECT globalTid AS global_tid, count(*) AS switches
FROM unscoped.SCHED_EVENTS
GROUP BY ALL;

COMMENT ON VIEW _scheduling IS
    'The threads for which nsys recorded when they had a CPU, as with --cpuctxsw=process-tree.';
COMMENT ON COLUMN _scheduling.global_tid IS 'The thread';
COMMENT ON COLUMN _scheduling.switches IS 'How often it gained or lost one';
