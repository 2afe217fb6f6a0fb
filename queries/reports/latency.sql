/*
title = "Time to first token and between tokens"
topic = "steps"
place = 7
question = "How long do requests wait for their first token, and between tokens: min, p50, p90, p95, p99, max?"
examples = ["", "--group-by all"]
main = ["request", "metric", "p50_ns", "p90_ns", "p99_ns", "mean_ns", "max_ns", "values_count"]
description = """
Follows the requests that NVTX ranges of prefill and decode name (prefill req=3, decode req=1,2,3; or a range
request 3 around them). A token is complete when the step that makes it is done: its range is closed, and everything
launched in it has finished. The first token is that of the last prefill before the first decode of the request;
each decode makes one more. ttft is the time to first token, measured from where a range or a mark names the request
without a phase (its arrival), else from its first prefill, which excludes the time in the queue. itl is the time
from one token to the next, e2e the time from the beginning to the last token. Where no range names requests, but
one sequence is decoded at a time, each prefill begins a request. Percentiles are measured values (nearest rank); a
percentile is NULL where no value is above it."""
reading = """
A p99 of itl far above its median: steps that also prefill, see phases; or outliers, see steps --phase decode. A
ttft far above the wall time of a prefill is time in the queue, or a prefill in several chunks. Figures are those of
the profiled run: where the host is the limit, it is slower under the profiler."""
empty = """\
Requests cannot be distinguished: no NVTX range of prefill or decode names one, and several sequences may be decoded \
at a time. Name them in the ranges around each prefill and decode, such as decode req=1,2,3; see phases for the \
ranges that were found"""
details = ["mean_ns"]

[params.group_by]
default = "request"
choices = ["request", "all"]
help = "All requests together and each of them, or only all requests together"

[columns]
request = "The request, as ranges name it, else its number; NULL for all requests together"
metric = "ttft: time to first token; itl: inter-token latency; e2e: from the beginning to the last token in the trace"
values_count = "Number of values: one per request for ttft and e2e, one per token after the first for itl"
min_ns = "Minimum"
p50_ns = "Median: half of the values are no greater"
p90_ns = "90th percentile: 90% of the values are no greater; NULL where none is greater"
p95_ns = "95th percentile; NULL where no value is greater"
p99_ns = "99th percentile; NULL where no value is greater"
max_ns = "Maximum"
mean_ns = "Mean"

[notes]
first_token.text = [[
    "{?is_all}ttft begins with the prefill: no range or mark names a request before it",
    """{prefill_count} of {count:request begins|requests begin} with their prefill: no range or mark names them before
    it""",
    "{?has_none}ttft begins where a range or a mark first names the request",
]]
first_token.query = """
SELECT
    bool_and(begins = 'prefill') AS is_all, nullif(count(*) FILTER (begins = 'prefill'), 0) AS prefill_count,
    count(*) AS count,
    prefill_count IS NULL AS has_none
FROM requests WHERE begins IS NOT NULL HAVING count(*) > 0"""

throughput.text = "{requests:request}, {tokens:token} in {time_ns}: {tokens_per_s} tokens/s"
throughput.query = """
SELECT
    count(*) AS requests, sum(tokens) AS tokens, max(last_token_ns) - min(start_ns) AS time_ns,
    1e9 * sum(tokens) / (max(last_token_ns) - min(start_ns)) AS tokens_per_s
FROM requests WHERE reason IS NULL HAVING count(*) > 0 AND max(last_token_ns) > min(start_ns)"""

left_out.text = "{reasons}: their figures are incomplete"
left_out.items.reasons = "{requests:request} with {reason}"
left_out.query = """
SELECT list({'requests': requests, 'reason': reason} ORDER BY reason) AS reasons
FROM (
    SELECT
        CASE reason
            WHEN 'prefilled again after its first decode' THEN 'a prefill after a decode' ELSE reason
        END AS reason,
        count(*) AS requests
    FROM requests WHERE reason IS NOT NULL GROUP BY 1) HAVING count(*) > 0"""
*/
WITH latencies AS (
    SELECT request, 'ttft' AS metric, first_token_ns - start_ns AS ns
    FROM requests
    WHERE first_token_ns IS NOT NULL AND start_ns IS NOT NULL
    UNION ALL
    SELECT request, 'itl', since_last_ns FROM token_times WHERE since_last_ns IS NOT NULL
    UNION ALL
    SELECT request, 'e2e', last_token_ns - start_ns FROM requests WHERE reason IS NULL
),
-- Each value in the group of its request, and in the group of all requests.
grouped_latencies AS (
    SELECT request, metric, ns FROM latencies WHERE $group_by = 'request'
    UNION ALL
    SELECT NULL, metric, ns FROM latencies
)
SELECT
    request,
    metric,
    count(*) AS values_count,
    min(ns) AS min_ns,
    quantile_disc(ns, 0.5) AS p50_ns,
    CASE WHEN ceil(0.9 * count(*)) < count(*) THEN quantile_disc(ns, 0.9) END AS p90_ns,
    CASE WHEN ceil(0.95 * count(*)) < count(*) THEN quantile_disc(ns, 0.95) END AS p95_ns,
    CASE WHEN ceil(0.99 * count(*)) < count(*) THEN quantile_disc(ns, 0.99) END AS p99_ns,
    max(ns) AS max_ns,
    avg(ns) AS mean_ns
FROM grouped_latencies
GROUP BY request, metric
ORDER BY request IS NOT NULL, try_cast(request AS BIGINT) NULLS LAST, request,
    list_position(['ttft', 'itl', 'e2e'], metric)
