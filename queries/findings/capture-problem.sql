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
report = "info"
*/
SELECT NULL AS recoverable_ns, NULL AS wall_pct, NULL AS place, string_agg(DISTINCT detail, ' ' ORDER BY detail) AS evidence
FROM info_report
WHERE section = 'diagnostics' AND metric IN ('errors', 'warnings')
    -- What CPU samples, context switches and unified memory lack changes no number here.
    AND NOT regexp_matches(detail, '(?i)paranoid|backtrace|CPU (IP|kernel|sampl)|context switch|perf event|sampling|unified memory|ftrace|OpenGL|Vulkan|DX1[12]|OpenACC')
    AND (metric = 'errors' OR regexp_matches(detail, '(?i)\b(lost|dropped|drops|overflow|incomplete|discarded|truncated)'))
HAVING count(*) > 0
UNION ALL
SELECT NULL, wall_pct, NULL, 'the launch calls of what ended ' || share_text(wall_pct) || ' of the wall are not in the trace'
FROM classify_report
WHERE part = 'unknown' AND wall_pct >= 1
