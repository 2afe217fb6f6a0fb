-- Without call stacks, a call is identified by the NVTX ranges around it, and by the calls of its thread before and
-- after it.
CREATE OR REPLACE TABLE internal.call_neighbors AS
WITH calls AS (
    SELECT
        process_id, thread_id, start_ns, correlation_id, name,
        lag(name) OVER along AS before_name, lead(name) OVER along AS after_name
    FROM outer_api_calls
    WINDOW along AS (PARTITION BY process_id, thread_id ORDER BY start_ns, correlation_id)
),
calls_with_range AS (
    SELECT c.*, p.range_id
    FROM calls AS c
    ASOF LEFT JOIN nvtx_places AS p ON p.process_id = c.process_id AND p.thread_id = c.thread_id
        AND p.start_ns <= c.start_ns
    WHERE c.correlation_id IS NOT NULL
)
SELECT p.process_id, p.correlation_id, n.path, p.before_name, p.after_name
FROM calls_with_range AS p
LEFT JOIN nvtx_nesting AS n USING (range_id);

INSERT INTO facts.call_places BY NAME
WITH folded_paths AS (
    SELECT path, fold(path) AS folded FROM (SELECT DISTINCT path FROM internal.call_neighbors WHERE path IS NOT NULL)
),
place_names AS (
    SELECT DISTINCT concat_ws(', ',
        'in ' || f.folded, 'after ' || n.before_name, 'before ' || n.after_name
    ) AS name
    FROM (SELECT DISTINCT path, before_name, after_name FROM internal.call_neighbors) AS n
    LEFT JOIN folded_paths AS f USING (path)
)
SELECT row_number() OVER (ORDER BY name) AS place_id, name FROM place_names;

INSERT INTO facts.called_from BY NAME
WITH folded_paths AS (
    SELECT path, fold(path) AS folded FROM (SELECT DISTINCT path FROM internal.call_neighbors WHERE path IS NOT NULL)
),
place_names AS (
    SELECT n.path, n.before_name, n.after_name, p.place_id
    FROM (SELECT DISTINCT path, before_name, after_name FROM internal.call_neighbors) AS n
    LEFT JOIN folded_paths AS f USING (path)
    JOIN facts.call_places AS p
        ON p.name = concat_ws(', ', 'in ' || f.folded, 'after ' || n.before_name, 'before ' || n.after_name)
)
SELECT c.process_id, c.correlation_id, NULL AS chain_id, n.place_id
FROM internal.call_neighbors AS c
JOIN place_names AS n ON n.path IS NOT DISTINCT FROM c.path AND n.before_name IS NOT DISTINCT FROM c.before_name
    AND n.after_name IS NOT DISTINCT FROM c.after_name;

DROP TABLE internal.call_neighbors;
