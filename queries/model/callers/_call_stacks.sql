-- The same with the frames from there outwards, at most so many: run (model.py) < main (model.py). Of code that is the program's,
-- Python's or a library's; each list of frames gets its text once.
CREATE MACRO _call_stacks(most) AS TABLE
WITH kept AS (
    SELECT frame_id, name FROM facts.frames WHERE kind IN ('python', 'operator', 'native', 'entry', 'program', 'library')
),
chains AS MATERIALIZED (
    SELECT chain_id, list_slice(stack, 1, most) AS stack
    FROM (
        SELECT c.chain_id, list(f.frame_id ORDER BY f.depth) AS stack
        FROM facts.callers AS c
        JOIN facts.chain_frames AS f ON f.of = 'api' AND f.chain_id = c.chain_id AND f.depth >= c.depth
        WHERE f.depth = c.depth OR f.frame_id IN (SELECT frame_id FROM kept)
        GROUP BY c.chain_id
    )
),
stacks AS MATERIALIZED (
    SELECT stack, row_number() OVER () AS stack_id FROM (SELECT DISTINCT stack FROM chains)
),
texts AS (
    SELECT s.stack_id, string_agg(f.name, ' < ' ORDER BY s.number) AS name
    FROM (SELECT stack_id, unnest(stack) AS frame_id, unnest(range(len(stack))) AS number FROM stacks) AS s
    JOIN facts.frames AS f USING (frame_id)
    GROUP BY s.stack_id
)
SELECT p.process_id, p.correlation_id, coalesce(t.name, p.name) AS name
FROM call_places AS p
LEFT JOIN chains AS c USING (chain_id)
LEFT JOIN stacks AS s USING (stack)
LEFT JOIN texts AS t USING (stack_id);
