INSERT INTO facts.nested_ranges BY NAME
SELECT
    range_id, nullif(n.outer_id, 0) AS outer_id, nullif(n.parent_id, 0) AS parent_id, n.depth, n.path_id, r.process_id,
    r.thread_id, r.domain_id, r.start_ns, r.end_ns, r.close_ns, t.name, t.domain, r.is_free
FROM internal.ranges_by_start AS r
JOIN internal.range_texts AS t USING (text_id)
JOIN rows_to_insert AS n USING (range_id);
