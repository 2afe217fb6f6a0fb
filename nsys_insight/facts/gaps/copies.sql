-- The calls, among those listed, that return only when their copy is done.
INSERT INTO facts.listed_copies BY NAME
SELECT DISTINCT process_id, correlation_id, is_to_host
FROM _blocking_copies
SEMI JOIN facts.listed_activity USING (process_id, correlation_id);
