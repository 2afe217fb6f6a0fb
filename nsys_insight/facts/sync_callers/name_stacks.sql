-- Name the call stacks whose rows are in internal.chain_rows, and whose symbols are in internal.chain_symbols.
CREATE OR REPLACE TABLE internal.chain_names AS
WITH chain_rows AS (
    FROM internal.chain_symbols
)
FROM _numbered_frames('chain_rows');

CREATE OR REPLACE TABLE internal.chain_frames AS
SELECT c.id AS chain_id, least(greatest(c.stackDepth, 0), 65535)::USMALLINT AS depth, f.frame_id
FROM internal.chain_rows AS c
JOIN (FROM internal.chain_names WHERE line IS NULL) AS f ON f.symbol_id = c.symbol AND f.module_id = c.module
UNION ALL
SELECT chain_id, depth, frame_id FROM facts.python_frames;

CREATE OR REPLACE TABLE internal.chain_callers AS
WITH chains AS (
    FROM internal.chain_frames
),
names AS (
    FROM internal.chain_names
)
FROM _first_frames('chains', 'names');
