-- When each request began, and when its tokens were done. The first token is done with the last prefill before the
-- first decode, the others with each decode. A request begins with a range or a mark that names it and no phase, if
-- there is one, otherwise with its first prefill. If no range names requests, each prefill begins one, provided that
-- this is unambiguous.
INSERT INTO facts.requests BY NAME
WITH ranges_with_step AS (
    SELECT r.*, s.done_ns
    FROM _phase_ranges AS r
    JOIN facts.phase_steps AS s ON s.host_start_ns = r.step_start_ns AND s.process_id = r.process_id
        AND s.thread_id = r.thread_id
),
names AS (
    SELECT count(*) FILTER (len(prefill_ids) + len(decode_ids) > 0) AS named FROM ranges_with_step
),
phases AS (
    SELECT
        count(*) FILTER (phase = 'prefill') AS prefills,
        bool_and(phase = 'prefill' OR coalesce(batch_size, 1) = 1) AND NOT bool_or(step_phase = 'mixed') AS is_single,
        bool_and(batch_size = 1) FILTER (phase = 'decode') AS is_batch_one
    FROM ranges_with_step
),
-- Sequences one after the other: a prefill after a decode begins the next one.
turns AS (
    SELECT *, coalesce(lag(phase) OVER (ORDER BY start_ns) <> 'prefill', true) AND phase = 'prefill' AS is_new_sequence
    FROM ranges_with_step
),
-- Phases, each with the number of its sequence.
numbered_turns AS (
    SELECT *, count(CASE WHEN is_new_sequence THEN 1 END) OVER (ORDER BY start_ns ROWS UNBOUNDED PRECEDING) AS turn
    FROM turns
),
-- Prefills and decodes of each request.
events AS (
    SELECT unnest(prefill_ids) AS request, 'prefill' AS what, start_ns, done_ns FROM ranges_with_step
    UNION ALL
    SELECT unnest(decode_ids), 'decode', start_ns, done_ns FROM ranges_with_step
    UNION ALL
    SELECT turn::VARCHAR, phase, start_ns, done_ns
    FROM numbered_turns, names, phases
    WHERE named = 0 AND phase IN ('prefill', 'decode') AND is_single AND turn > 0
        AND (is_batch_one OR (SELECT max(turn) FROM numbered_turns) = 1)
),
first_decodes AS (
    SELECT
        request, min(start_ns) FILTER (what = 'decode') AS decode_ns,
        max(start_ns) FILTER (what = 'prefill') AS prefill_ns
    FROM events GROUP BY request
),
-- When each request was first prefilled, and when its tokens were done.
tokens AS (
    SELECT
        e.request,
        min(e.start_ns) AS begin_ns,
        min(e.start_ns) FILTER (e.what = 'prefill') AS prefill_ns,
        max(e.done_ns) FILTER (e.what = 'prefill' AND e.start_ns < f.decode_ns) AS first_ns,
        list(e.done_ns ORDER BY e.done_ns) FILTER (e.what = 'decode') AS decoded,
        bool_or(e.what = 'prefill' AND e.start_ns > f.decode_ns) AS is_prefilled_again,
        max(f.decode_ns) AS decode_ns
    FROM events AS e JOIN first_decodes AS f USING (request)
    GROUP BY e.request
),
-- When ranges and marks that name a request, and no phase, began.
arrivals AS (
    SELECT request, min(start_ns) AS start_ns
    FROM (
        SELECT unnest(n.prefill_ids) AS request, r.start_ns
        FROM nvtx_ranges AS r JOIN _phase_names AS n USING (name)
        WHERE n.is_request AND r.process_id = $process
        UNION ALL
        SELECT unnest(_request_ids(name)), start_ns FROM nvtx_marks WHERE process_id = $process
    )
    GROUP BY request
),
request_times AS (
    SELECT
        t.request,
        CASE WHEN a.start_ns <= t.prefill_ns THEN 'arrival' WHEN t.prefill_ns IS NOT NULL THEN 'prefill' END AS begins,
        CASE WHEN a.start_ns <= t.prefill_ns THEN a.start_ns ELSE t.prefill_ns END AS start_ns,
        t.first_ns,
        CASE
            WHEN t.is_prefilled_again THEN 'prefilled again after its first decode'
            WHEN t.decoded IS NULL THEN 'no decode in the capture'
            WHEN t.prefill_ns IS NULL THEN 'no prefill in the capture'
        END AS reason,
        CASE WHEN t.is_prefilled_again OR t.decoded IS NULL THEN []
            ELSE list_filter([t.first_ns], lambda ns: ns IS NOT NULL) || t.decoded END AS token_ns
    FROM tokens AS t LEFT JOIN arrivals AS a USING (request)
)
SELECT
    request, begins, start_ns, CASE WHEN len(token_ns) > 0 THEN first_ns END AS first_token_ns,
    token_ns[-1] AS last_token_ns,
    len(token_ns) AS tokens, reason, token_ns
FROM request_times
