/*
title = "Occurrences of an NVTX range, one by one"
topic = "program"
place = 2
question = "How long does each occurrence of an NVTX range take, on the host and on the GPU, and which ones differ?"
examples = ["--instances decode_step", "--instances 'step #' --nvtx train"]
page = false
main = ["instance", "start_ns", "host_ns", "gpu_ns", "gpu_idle_during_ns", "kernels", "first_name", "last_name"]
details = ["operations", "process_id", "thread_id", "first_start_ns", "last_end_ns", "name"]
description = """
One row for each time that a range was open, in order. The name is as nvtx lists it: with # it stands for all numbers.
GPU work belongs to the occurrence that is open on the launching thread when its launch call begins, no matter when it
runs, so it may run after the range was closed: gpu_ns adds up its durations, projected_ns is the time from the start of
its first operation to the end of its last. gpu_busy_during_ns and gpu_idle_during_ns are what the GPU does while the
range is open, no matter who launched it; they are unknown with --step. Occurrences that are nested in each other both
count what the inner one launched. The same as nvtx --instances."""
reading = """
The note has the distribution. An occurrence with a longer host_ns and the same gpu_ns waits for the host: gaps with
--from and --to shows when. One with more kernels or a longer gpu_ns does other work. A projected_ns far above host_ns:
its work is still queued when the range closes, so the range does not show how long the work takes."""
empty = "No NVTX range has this name in this scope: nsys-insight nvtx lists the names"

[params.instances]
type = "text"
noun = "NVTX range"
names = "SELECT DISTINCT fold(name) AS name FROM (SELECT DISTINCT name FROM nvtx_ranges) ORDER BY name LIMIT 1000"
help = "Name as nvtx lists it, such as 'step #', or with its number (default: the name with the most host time)"

[columns]
instance = "Number of the occurrence in order of time, from 1"
start_ns = "When the range was opened"
host_ns = "From then until it was closed; NULL if it was still open at the end of the capture"
gpu_ns = "Sum of the durations of the GPU operations launched inside"
gpu_busy_during_ns = """\
Time in which the GPU was busy while the range was open, whoever launched the work; the mean of the GPUs that its \
process uses"""
gpu_idle_during_ns = "The rest of that time, in which the GPU was idle"
projected_ns = "From the start of the first operation launched inside to the end of the last; NULL if there is none"
kernels = "Kernels launched inside"
operations = "Kernels, copies, memsets and whole graphs launched inside"
first_name = "The operation launched inside that starts first on the GPU"
last_name = "The one that ends last"
first_start_ns = "When the first operation starts"
last_end_ns = "When the last operation ends"
name = "The range's own text, with its numbers, after its domain if it has one"
process_id = "Operating system's process id"
thread_id = "Thread that opened it"

[notes]
distribution.text = """
{occurrences:occurrence}: host time {host_low_ns} to {host_high_ns} (median {host_med_ns}, 95th percentile
{host_p95_ns}); GPU time {gpu_low_ns} to {gpu_high_ns} (median {gpu_med_ns}, 95th percentile {gpu_p95_ns})<; GPU idle
meanwhile {idle_low_ns} to {idle_high_ns} (median {idle_med_ns})>"""
distribution.query = """
SELECT
    count(*) AS occurrences,
    min(host_ns) AS host_low_ns, max(host_ns) AS host_high_ns, median(host_ns) AS host_med_ns,
    quantile_cont(host_ns, 0.95) AS host_p95_ns,
    min(gpu_ns) AS gpu_low_ns, max(gpu_ns) AS gpu_high_ns, median(gpu_ns) AS gpu_med_ns,
    quantile_cont(gpu_ns, 0.95) AS gpu_p95_ns,
    min(gpu_idle_during_ns) AS idle_low_ns, max(gpu_idle_during_ns) AS idle_high_ns,
    median(gpu_idle_during_ns) AS idle_med_ns
FROM answer HAVING count(host_ns) > 0"""

long.text = """
{occurrences:occurrence takes|occurrences take} more than 1.5 times the median on the host: {list}<, …{?is_cut}>"""
long.query = """
SELECT
    count(*) AS occurrences, string_agg(instance, ', ' ORDER BY host_ns DESC, instance) FILTER (place <= 5) AS list,
    count(*) > 5 AS is_cut
FROM (
    SELECT instance, host_ns, row_number() OVER (ORDER BY host_ns DESC, instance) AS place
    FROM answer WHERE host_ns > 1.5 * (SELECT median(host_ns) FROM answer)
)
HAVING count(*) > 0"""

step.text = """
the GPU also runs work of earlier steps during these ranges, which is not in this scope, so busy and idle times during
them are unknown"""
step.query = "SELECT 1 AS one FROM scope WHERE steps <> 'steady' AND EXISTS (FROM answer)"
*/
WITH range_texts AS MATERIALIZED (
    SELECT
        CASE WHEN domain = '' THEN name ELSE domain || ':' || name END AS text, process_id, thread_id, start_ns, end_ns
    FROM nvtx_ranges
),
names AS MATERIALIZED (
    SELECT text, fold(text) AS folded FROM (SELECT DISTINCT text FROM range_texts)
),
longest_name AS (
    SELECT n.folded
    FROM range_texts AS r JOIN names AS n USING (text)
    GROUP BY n.folded
    ORDER BY sum(duration(r.start_ns, r.end_ns)) DESC NULLS LAST, n.folded
    LIMIT 1
),
matching_names AS (
    SELECT text FROM names
    WHERE coalesce($instances, (FROM longest_name)) IN (text, folded, folded_name(text))
),
-- Each occurrence is a group of its own for the macros.
ranges AS MATERIALIZED (
    SELECT
        row_number() OVER (ORDER BY start_ns, end_ns, process_id, thread_id, text) AS group_id,
        text, process_id, thread_id, thread_of(thread_id, process_id) AS thread, start_ns, end_ns,
        greatest(
            start_ns,
            coalesce(end_ns, (SELECT max(greatest(start_ns, coalesce(end_ns, start_ns))) + 1 FROM nvtx_ranges))
        ) AS close_ns
    FROM range_texts SEMI JOIN matching_names USING (text)
),
launched_work AS (
    SELECT
        r.group_id, o.kind, o.start_ns, o.end_ns, o.duration_ns, o.name_id, o.label, o.correlation_id
    FROM ranges AS r
    JOIN api_calls AS a
        ON a.process_id = r.process_id AND a.thread_id = r.thread_id
        AND a.start_ns >= r.start_ns AND a.start_ns < r.close_ns
    JOIN gpu_ops AS o ON o.process_id = a.process_id AND o.correlation_id = a.correlation_id
    WHERE a.call_group IN ('launch', 'graph launch', 'copy', 'memset')
),
work_of_ranges AS (
    SELECT
        group_id, sum(duration_ns)::BIGINT AS gpu_ns, count(*) AS operations,
        count(*) FILTER (kind = 'kernel') AS kernels, min(start_ns) AS first_start_ns, max(end_ns) AS last_end_ns,
        arg_min({name_id: name_id, label: label}, (start_ns, correlation_id)) AS first_one,
        arg_max({name_id: name_id, label: label}, (end_ns, correlation_id)) AS last_one
    FROM launched_work
    GROUP BY group_id
)
SELECT
    r.group_id AS instance, r.start_ns, duration(r.start_ns, r.end_ns) AS host_ns, coalesce(w.gpu_ns, 0) AS gpu_ns,
    CASE WHEN s.steps IS NULL OR s.steps = 'steady' THEN d.busy_ns END AS gpu_busy_during_ns,
    CASE WHEN s.steps IS NULL OR s.steps = 'steady' THEN d.open_ns - d.busy_ns END AS gpu_idle_during_ns,
    w.last_end_ns - w.first_start_ns AS projected_ns,
    coalesce(w.kernels, 0) AS kernels, coalesce(w.operations, 0) AS operations,
    coalesce(f.name, w.first_one.label) AS first_name,
    coalesce(l.name, w.last_one.label) AS last_name,
    w.first_start_ns, w.last_end_ns, r.text AS name, r.process_id, r.thread_id
FROM ranges AS r
CROSS JOIN scope AS s
LEFT JOIN work_of_ranges AS w USING (group_id)
LEFT JOIN _busy_during('ranges') AS d USING (group_id)
LEFT JOIN strings AS f ON f.name_id = w.first_one.name_id
LEFT JOIN strings AS l ON l.name_id = w.last_one.name_id
ORDER BY instance
