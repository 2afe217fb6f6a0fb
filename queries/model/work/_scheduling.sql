/*
description = "The threads for which nsys recorded when they had a CPU, as with --cpuctxsw=process-tree."
[columns]
global_tid = "The thread"
switches = "How often the thread gained or lost a CPU"
*/
SELECT globalTid AS global_tid, count(*) AS switches
FROM unscoped.SCHED_EVENTS
GROUP BY ALL;
