-- The first steady steps, as many as have $most operations together; at least one.
CREATE OR REPLACE TABLE internal.first_steps AS
SELECT
    step, host_start_ns, host_end_ns, start_ns, end_ns,
    count(*) OVER () * (SELECT coalesce(any_value(tokens_per_step), 1) FROM step_method) AS units
FROM (
    SELECT
        *, row_number() OVER in_order AS number,
        sum(kernels + h2d_copies + d2h_copies) OVER in_order AS operations_until
    FROM steps WHERE phase = 'steady'
    WINDOW in_order AS (ORDER BY step)
)
WHERE number = 1 OR operations_until <= $most
