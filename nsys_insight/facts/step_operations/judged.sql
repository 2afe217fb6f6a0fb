-- Of several replacements of one construct whose conditions hold, the first counts: entries list the larger one first.
CREATE OR REPLACE TABLE internal.chosen_estimates AS
FROM internal.replacement_estimates
QUALIFY replacement = min(replacement) OVER (PARTITION BY row_number);

INSERT INTO facts.step_operations BY NAME
SELECT
    o.* EXCLUDE (row_number, base_name),
    CASE
        WHEN o.row_number IN (SELECT row_number FROM internal.chosen_estimates) THEN 'replaceable'
        WHEN o.row_number IN (SELECT row_number FROM internal.efficient_operations) THEN 'efficient'
    END AS judgment
FROM internal.unjudged_operations AS o
ORDER BY o.row_number;
