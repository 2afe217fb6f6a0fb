INSERT INTO facts.rank_steps BY NAME SELECT * REPLACE (nullif(host_ns, -1) AS host_ns) FROM new_rows
