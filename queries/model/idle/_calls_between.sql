-- What the host called between two times, of which NULL is no limit: the two calls that take longest, in words, and the time in
-- which any thread was in a call.
CREATE MACRO _calls_between(from_ns, until_ns) AS TABLE
WITH called AS (
    SELECT name, greatest(start_ns, from_ns) AS start_ns, least(end_ns, until_ns) AS end_ns
    FROM outer_api_calls
    WHERE (end_ns > from_ns) IS NOT false AND (start_ns < until_ns) IS NOT false
),
longest AS (
    SELECT name, sum(end_ns - start_ns)::BIGINT AS total_ns FROM called GROUP BY name ORDER BY total_ns DESC, name LIMIT 2
),
reached AS (
    SELECT
        start_ns, end_ns,
        coalesce(max(end_ns) OVER (ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), start_ns) AS until_then_ns
    FROM called
)
SELECT
    (SELECT string_agg(name || ', ' || time_text(total_ns), '; ' ORDER BY total_ns DESC, name) FROM longest) AS longest,
    (SELECT coalesce(sum(greatest(end_ns - greatest(start_ns, until_then_ns), 0)), 0)::BIGINT FROM reached) AS covered_ns;
