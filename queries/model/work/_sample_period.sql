-- nsys samples a thread each time that it has used so much of a CPU: between most samples of one that computes lies one period.
CREATE VIEW _sample_period AS
SELECT median(start_ns - last_ns) AS period_ns, (count(*) + count(DISTINCT thread))::BIGINT AS samples
FROM (
    SELECT start AS start_ns, globalTid AS thread, lag(start) OVER (PARTITION BY globalTid ORDER BY start) AS last_ns
    FROM whole.COMPOSITE_EVENTS
)
WHERE start_ns > last_ns
HAVING count(*) >= 3;

COMMENT ON VIEW _sample_period IS 'How much CPU time a sample stands for; no row where there are too few samples to tell.';
COMMENT ON COLUMN _sample_period.period_ns IS 'Median time between two samples of a thread';
COMMENT ON COLUMN _sample_period.samples IS 'Samples of the trace';
