INSERT INTO facts.listed_operations BY NAME
SELECT o.gpu_id, o.start_ns, o.end_ns, o.process_id, o.correlation_id, coalesce(s.name, o.label) AS name
FROM _gpu_work AS o
LEFT JOIN strings AS s USING (name_id)
WHERE o.start_ns IN (SELECT next_ns FROM facts.listed_gaps)
    OR o.end_ns IN (SELECT running_end_ns FROM facts.listed_gaps);
