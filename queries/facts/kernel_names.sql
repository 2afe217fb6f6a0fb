CREATE TABLE IF NOT EXISTS facts.kernel_names (
    name_id BIGINT, name VARCHAR, family VARCHAR, provenance VARCHAR
);

INSERT INTO facts.kernel_names BY NAME
SELECT
    s.name_id,
    s.name,
    kernel_family(s.name) AS family,
    kernel_provenance(s.name) AS provenance
FROM strings AS s
WHERE s.name_id IN (SELECT DISTINCT name_id FROM kernel_events);
