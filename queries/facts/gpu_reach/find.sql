-- Operations overlap, so what matters at the start of one is the latest end so far, not the end of the one before it.
-- Of a part of the line, from a place up to another one, with what was reached before it and the last call there. To sort by one
-- number takes half the memory, and two thirds of the time, that a window for each GPU takes. What is in order needs windows
-- without one, which keep no row.
INSERT INTO facts.gpu_reach BY NAME
WITH reach AS (
    SELECT
        place, until, call,
        coalesce(lag(reached) OVER (), $reached::BIGINT) AS reached_before,
        CASE WHEN row_number() OVER () = 1 THEN $call::BIGINT ELSE lag(call) OVER () END = call AS is_same_call
    FROM (
        SELECT *, greatest(max(until) OVER (ROWS UNBOUNDED PRECEDING), $reached::BIGINT) AS reached
        FROM (
            FROM _gpu_line
            WHERE ($from_place IS NULL OR place >= $from_place) AND ($to_place IS NULL OR place < $to_place)
            ORDER BY place, call
        )
    )
)
SELECT
    gpu_on_line(place) AS gpu_id,
    ns_on_line(place) AS start_ns,
    ns_on_line(until) AS end_ns,
    CASE WHEN place >> lane_bits() = reached_before >> lane_bits() THEN ns_on_line(reached_before) END AS running_end_ns,
    call,
    is_same_call
FROM reach
