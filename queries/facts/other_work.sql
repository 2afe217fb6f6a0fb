-- A fact of its own: what one statement reads twice, DuckDB holds as a whole.
CREATE TABLE IF NOT EXISTS facts.other_work (
    gpu_id BIGINT, start_ns BIGINT, end_ns BIGINT, level INTEGER
);

INSERT INTO facts.other_work BY NAME
SELECT gpu_id, start_ns, end_ns, level
FROM _levelled_work
WHERE level > 0;
