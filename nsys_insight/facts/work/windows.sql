-- Late gaps up to the launch call, as positions on the timeline.
SELECT t.start_ns + l.shift_ns AS line_start, least(t.call_ns, t.end_ns) + l.shift_ns AS line_end, t.start_ns AS gap_ns
FROM facts.idle_time AS t
JOIN internal.work_tracks AS l USING (gpu_id, thread)
WHERE t.host = idle_host('late') AND t.call_ns > t.start_ns
