/* parameters = ["chains", "names"] */
-- The frame that names a chain: the innermost Python frame; else the operator; else the innermost frame of the
-- program's own code. In at::native and in a library that programs call, the outermost function counts: it is the
-- entry. Frames of the profiler, the driver and the runtime never name a chain. Frames are ranked by one packed
-- integer, so `min()` picks the best without a sort. Chains with one signature have the same frames. `chains`:
-- chain_id, depth, frame_id; `names` has the frames.
WITH frame_turns AS (
    SELECT
        frame_id,
        CASE
            WHEN kind = 'python' THEN 0
            WHEN kind = 'operator' THEN 1
            WHEN kind = 'native' THEN 2
            WHEN kind = 'entry' THEN 3
            WHEN kind = 'program' AND function IS NOT NULL THEN 4
            WHEN kind = 'library' AND function IS NOT NULL THEN 5
            WHEN kind IN ('program', 'library') THEN 6
            WHEN kind = 'interpreter' THEN 7
            ELSE 8
        END AS turn,
        kind IN ('native', 'entry') AS is_outermost
    FROM query_table(names)
    WHERE kind NOT IN ('profiler', 'driver', 'runtime', 'unknown')
),
frame_numbers AS (
    SELECT
        c.chain_id,
        (r.turn * 65536 + CASE WHEN r.is_outermost THEN 65535 - c.depth ELSE c.depth END) * 4294967296
            + c.frame_id AS number
    FROM query_table(chains) AS c
    JOIN frame_turns AS r USING (frame_id)
),
first_frames AS (
    SELECT chain_id, min(number) AS first, bit_xor(hash(number)) AS signature, count(*) AS frames
    FROM frame_numbers
    GROUP BY chain_id
)
SELECT
    chain_id, (first & 4294967295)::INTEGER AS frame_id,
    CASE
        WHEN (first >> 48) IN (2, 3) THEN 65535 - (first >> 32 & 65535) ELSE first >> 32 & 65535
    END::USMALLINT AS depth,
    hash(signature, frames) AS signature
FROM first_frames;
