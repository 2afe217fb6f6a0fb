-- `facts.callers`: the frame that names each call stack of a CUDA call. Stacks with the same signature have the same
-- frames. `facts.called_from`: where each CUDA call was made, as a place of `facts.call_places`.
CREATE TABLE IF NOT EXISTS facts.callers (
    chain_id BIGINT, frame_id INTEGER, depth USMALLINT, signature UBIGINT
);

CREATE TABLE IF NOT EXISTS facts.called_from (
    process_id BIGINT, correlation_id BIGINT, chain_id BIGINT, place_id INTEGER
);

CREATE TABLE IF NOT EXISTS facts.call_places (
    place_id INTEGER, name VARCHAR
);
