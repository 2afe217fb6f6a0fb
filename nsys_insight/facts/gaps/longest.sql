-- One pass that keeps only the 1,000 longest gaps; of gaps with the same length, the earliest.
INSERT INTO facts.listed_gaps BY NAME
SELECT
    row_number() OVER (ORDER BY gap.duration_ns DESC, gap.before_ns DESC, gap.before_gpu DESC) AS gap_id,
    -gap.before_gpu AS gpu_id,
    -gap.before_ns AS start_ns, gap.end_ns, gap.duration_ns, gap.running_end_ns, gap.next_ns, idle_ns
FROM (
    SELECT sum(duration_ns) AS idle_ns, unnest(max({
        duration_ns: duration_ns, before_ns: -start_ns, before_gpu: -gpu_id, end_ns: end_ns,
        running_end_ns: running_end_ns, next_ns: next_ns
    }, 1000)) AS gap
    FROM gpu_gaps
);
