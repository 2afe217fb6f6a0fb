-- The same with the frames from there outwards, at most so many: run (model.py) < main (model.py). Of code that is the program's,
-- Python's or a library's; each list of frames gets its text once.
CREATE MACRO _call_stacks(most) AS TABLE
WITH kept AS (
    SELECT frame_id FROM facts.api_frames WHERE kind IN ('python', 'operator', 'native', 'entry', 'program', 'library')
),
-- nsys writes a chain for each call; few differ.
alike AS MATERIALIZED (
    SELECT signature, min(chain_id) AS chain_id FROM facts.callers GROUP BY signature
),
stacks AS (
    SELECT s.signature, list(f.frame_id ORDER BY f.depth) AS frames
    FROM alike AS s
    JOIN facts.callers AS c USING (chain_id)
    JOIN _api_chains AS f ON f.chain_id = c.chain_id AND f.depth >= c.depth
    WHERE f.depth = c.depth OR f.frame_id IN (FROM kept)
    GROUP BY s.signature
),
texts AS MATERIALIZED (
    SELECT s.signature, string_agg(f.name, ' < ' ORDER BY s.number) AS name
    FROM (SELECT signature, unnest(frames[1:most]) AS frame_id, unnest(range(least(len(frames), most))) AS number FROM stacks) AS s
    JOIN facts.api_frames AS f USING (frame_id)
    GROUP BY s.signature
)
SELECT p.process_id, p.correlation_id, coalesce(t.name, p.name) AS name
FROM call_places AS p
LEFT JOIN facts.callers AS c USING (chain_id)
LEFT JOIN texts AS t USING (signature);
