-- When each request began, and when its tokens were there: the first one when the last prefill is done that comes
-- before its first decode, the others with each decode. A request begins where a range or a mark that names it and no
-- phase begins, if that is there; else with its first prefill. Where no range names requests, each prefill begins one,
-- if that can be told.
INSERT INTO facts.requests BY NAME
WITH steps_of AS (
    SELECT r.*, s.done_ns
    FROM _phase_ranges AS r
    JOIN facts.phase_steps AS s ON s.host_start_ns = r.step_start_ns AND s.process_id = r.process_id
        AND s.thread_id = r.thread_id
),
names AS (
    SELECT count(*) FILTER (len(prefill_ids) + len(decode_ids) > 0) AS named FROM steps_of
),
phases AS (
    SELECT
        count(*) FILTER (phase = 'prefill') AS prefills,
        bool_and(phase = 'prefill' OR coalesce(batch_size, 1) = 1) AND NOT bool_or(step_phase = 'mixed') AS is_single,
        bool_and(batch_size = 1) FILTER (phase = 'decode') AS is_said
    FROM steps_of
),
-- One sequence after the other: a prefill after a decode begins the next one.
turns AS (
    SELECT *, coalesce(lag(phase) OVER (ORDER BY start_ns) <> 'prefill', true) AND phase = 'prefill' AS is_next
    FROM steps_of
),
numbered AS (
    SELECT *, count(CASE WHEN is_next THEN 1 END) OVER (ORDER BY start_ns ROWS UNBOUNDED PRECEDING) AS turn FROM turns
),
events AS (
    SELECT unnest(prefill_ids) AS request, 'prefill' AS what, start_ns, done_ns FROM steps_of
    UNION ALL
    SELECT unnest(decode_ids), 'decode', start_ns, done_ns FROM steps_of
    UNION ALL
    SELECT turn::VARCHAR, phase, start_ns, done_ns
    FROM numbered, names, phases
    WHERE named = 0 AND phase IN ('prefill', 'decode') AND is_single AND turn > 0
        AND (is_said OR (SELECT max(turn) FROM numbered) = 1)
),
first_decodes AS (
    SELECT
        request, min(start_ns) FILTER (what = 'decode') AS decode_ns,
        max(start_ns) FILTER (what = 'prefill') AS prefill_ns
    FROM events GROUP BY request
),
tokens AS (
    SELECT
        e.request,
        min(e.start_ns) AS begin_ns,
        min(e.start_ns) FILTER (e.what = 'prefill') AS prefill_ns,
        max(e.done_ns) FILTER (e.what = 'prefill' AND e.start_ns < f.decode_ns) AS first_ns,
        list(e.done_ns ORDER BY e.done_ns) FILTER (e.what = 'decode') AS decoded,
        bool_or(e.what = 'prefill' AND e.start_ns > f.decode_ns) AS is_again,
        max(f.decode_ns) AS decode_ns
    FROM events AS e JOIN first_decodes AS f USING (request)
    GROUP BY e.request
),
arrivals AS (
    SELECT request, min(start_ns) AS start_ns
    FROM (
        SELECT unnest(n.prefill_ids) AS request, r.start_ns
        FROM nvtx_ranges AS r JOIN _phase_names AS n USING (name)
        WHERE n.is_request AND r.process_id = $process
        UNION ALL
        SELECT unnest(_request_ids(name)), start_ns FROM _nvtx_marks WHERE process_id = $process
    )
    GROUP BY request
),
told AS (
    SELECT
        t.request,
        CASE WHEN a.start_ns <= t.prefill_ns THEN 'arrival' WHEN t.prefill_ns IS NOT NULL THEN 'prefill' END AS begins,
        CASE WHEN a.start_ns <= t.prefill_ns THEN a.start_ns ELSE t.prefill_ns END AS start_ns,
        t.first_ns,
        CASE
            WHEN t.is_again THEN 'prefilled again after its first decode'
            WHEN t.decoded IS NULL THEN 'no decode in the capture'
            WHEN t.prefill_ns IS NULL THEN 'no prefill in the capture'
        END AS reason,
        CASE WHEN t.is_again OR t.decoded IS NULL THEN []
            ELSE list_filter([t.first_ns], lambda ns: ns IS NOT NULL) || t.decoded END AS token_ns
    FROM tokens AS t LEFT JOIN arrivals AS a USING (request)
)
SELECT
    request, begins, start_ns, CASE WHEN len(token_ns) > 0 THEN first_ns END AS first_token_ns,
    token_ns[-1] AS last_token_ns,
    len(token_ns) AS tokens, reason, token_ns
FROM told
