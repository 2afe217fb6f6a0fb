/*
title = "The capture is not complete"
family = "capture"
severity = "warning"
meaning = """
nsys lost events or could not record them, so counts and times are lower bounds."""
action = """
Capture less at a time (--capture-range=cudaProfilerApi, --duration, fewer of -t), and let the program end by itself."""
caveat = """
What was lost lies outside of the part that you look at."""
report = '''
sql "SELECT severity, message, count(*) AS messages FROM diagnostics WHERE is_cuda_loss GROUP BY ALL ORDER BY ALL"
'''
*/
SELECT NULL AS recoverable_ns, NULL AS wall_pct, NULL AS place,
    string_agg(DISTINCT left(regexp_replace(trim(message), '\s+', ' ', 'g'), 300), ' ' ORDER BY left(regexp_replace(trim(message), '\s+', ' ', 'g'), 300)) AS evidence
FROM diagnostics
WHERE is_cuda_loss
HAVING count(*) > 0
UNION ALL
SELECT NULL, wall_pct, NULL, 'the launch calls of what ended ' || share_text(wall_pct) || ' of the wall are not in the trace'
FROM classify_report
WHERE part = 'unknown' AND wall_pct >= 1
