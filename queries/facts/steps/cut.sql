-- The operations of the stream between the marks of steps; an operation begins a piece, or ends one ($ends).
CREATE OR REPLACE TABLE internal.step_cut AS
SELECT m.at_ns, o.start_ns, o.end_ns, o.correlation_id, t.token IS NOT NULL AS is_typical
FROM internal.step_ops AS o
ASOF LEFT JOIN (SELECT start_ns + $ends::INT AS at_ns FROM internal.step_ops WHERE token = $mark) AS m
    ON m.at_ns <= o.start_ns
LEFT JOIN (
    SELECT DISTINCT token FROM internal.step_stream WHERE pos >= $typical_pos AND pos < $typical_pos + $period
) AS t
    ON t.token = o.token
