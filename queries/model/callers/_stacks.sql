/* parameters = ["callers", "chains", "names"] */
-- Each stack once: the frame that names it, and the names of its frames from there outwards. Only code of the program,
-- of Python and of libraries counts. `callers`: rows of _first_frames('chains', 'names').
WITH code_frames AS (
    SELECT frame_id
    FROM query_table(names)
    WHERE kind IN ('python', 'operator', 'native', 'entry', 'program', 'library')
),
-- nsys writes a chain for each call; few of them differ.
distinct_stacks AS MATERIALIZED (
    SELECT signature, min(chain_id) AS chain_id FROM query_table(callers) GROUP BY signature
),
stack_frames AS (
    SELECT s.signature, any_value(c.frame_id) AS frame_id, list(f.frame_id ORDER BY f.depth) AS frames
    FROM distinct_stacks AS s
    JOIN query_table(callers) AS c USING (chain_id)
    JOIN query_table(chains) AS f ON f.chain_id = c.chain_id AND f.depth >= c.depth
    WHERE f.depth = c.depth OR f.frame_id IN (FROM code_frames)
    GROUP BY s.signature
)
SELECT s.signature AS stack_id, any_value(n.name) AS name, list(f.name ORDER BY s.number) AS frames
FROM (
    SELECT signature, frame_id AS first_id, unnest(frames) AS frame_id, unnest(range(len(frames))) AS number
    FROM stack_frames
) AS s
JOIN query_table(names) AS f USING (frame_id)
JOIN query_table(names) AS n ON n.frame_id = s.first_id
GROUP BY s.signature;
