-- A scope of steps takes them from the unscoped trace: their numbers, phases and contents stay the same.
INSERT INTO facts.steps BY NAME FROM internal.scope_steps;

INSERT INTO facts.step_calls BY NAME FROM internal.scope_step_calls;

INSERT INTO facts.step_launches BY NAME FROM internal.scope_step_launches;

INSERT INTO facts.step_method BY NAME
SELECT m.* REPLACE (
    c.step_count AS step_count, c.steady_count AS steady_count, c.outlier_count AS outlier_count,
    c.warm_up_count AS warm_up_count, c.tail_count AS tail_count, 0 AS prefill_count
)
FROM internal.scope_step_method AS m, (
    SELECT
        count(step) AS step_count,
        count(*) FILTER (phase = 'steady') AS steady_count,
        count(*) FILTER (is_outlier) AS outlier_count,
        count(*) FILTER (phase = 'warm-up') AS warm_up_count,
        count(*) FILTER (phase = 'tail') AS tail_count
    FROM internal.scope_steps
) AS c
