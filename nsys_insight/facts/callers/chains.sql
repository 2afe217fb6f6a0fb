INSERT INTO facts.callers BY NAME
WITH chains AS (
    FROM _api_chains
),
names AS (
    FROM _api_frames
)
FROM _first_frames('chains', 'names');
