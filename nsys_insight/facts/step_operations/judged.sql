-- Of several replacements of one construct whose conditions hold, the first counts: entries list the larger one first.
CREATE OR REPLACE TABLE internal.chosen_estimates AS
FROM internal.replacement_estimates
WHERE NOT is_kind
QUALIFY replacement = min(replacement) OVER (PARTITION BY row_number);

-- What a replacement also does is gone with it, if it runs about as often.
CREATE OR REPLACE TABLE internal.included_operations AS
WITH replaced AS (
    SELECT
        e.construct, e.replacement, o.process_id, o.device_id, sum(o.calls) AS calls, min(o.calls) AS least_calls
    FROM internal.chosen_estimates AS e
    JOIN internal.unjudged_operations AS o USING (row_number)
    GROUP BY ALL
)
SELECT r.construct, r.replacement, o.row_number
FROM replaced AS r
JOIN construct_replacements() AS e USING (construct, replacement)
JOIN internal.unjudged_operations AS o
    ON o.process_id = r.process_id AND o.device_id = r.device_id AND o.construct <> r.construct
        AND list_contains(e.includes, o.construct) AND o.calls BETWEEN 0.2 * r.least_calls AND 4 * r.calls;

-- Kinds count where the entry of the construct has no judgment.
INSERT INTO internal.chosen_estimates
FROM internal.replacement_estimates
WHERE is_kind
    AND row_number NOT IN (SELECT row_number FROM internal.chosen_estimates)
    AND row_number NOT IN (SELECT row_number FROM internal.included_operations)
    AND row_number NOT IN (SELECT row_number FROM internal.efficient_operations)
QUALIFY (place, replacement) = min((place, replacement)) OVER (PARTITION BY row_number);

INSERT INTO facts.step_operations BY NAME
WITH included AS (
    SELECT row_number, min(construct) AS construct FROM internal.included_operations GROUP BY row_number
)
SELECT
    o.* EXCLUDE (row_number, base_name),
    CASE
        WHEN coalesce(e.construct, i.construct) IS NOT NULL THEN 'replaceable'
        WHEN f.row_number IS NOT NULL THEN 'efficient'
    END AS judgment,
    coalesce(e.construct, i.construct, CASE WHEN f.row_number IS NOT NULL THEN o.construct END) AS judged_by
FROM internal.unjudged_operations AS o
LEFT JOIN internal.chosen_estimates AS e USING (row_number)
LEFT JOIN included AS i USING (row_number)
LEFT JOIN internal.efficient_operations AS f USING (row_number)
ORDER BY o.row_number
