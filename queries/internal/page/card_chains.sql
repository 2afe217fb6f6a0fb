-- Whether CUDA calls have call chains.
SELECT 1 AS has_chains FROM call_frames WHERE "of" = 'api' LIMIT 1
