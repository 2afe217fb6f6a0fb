/*
description = """How the trace was captured and exported, as nsys recorded it, without the process's environment, host
    and user; *** replaces what looks like a secret in a command line."""
[columns]
name = "nsys's name of the setting"
value = "Value of the setting"
*/
-- Reports contain the environment of the profiled process and the name of its machine. These belong in no answer, nor
-- do keys that were passed as arguments.
SELECT name, value FROM facts.captured
UNION ALL
SELECT 'CAPTURE_START_NS', startTime::VARCHAR FROM raw.ANALYSIS_DETAILS
UNION ALL
SELECT 'CAPTURE_STOP_NS', stopTime::VARCHAR FROM raw.ANALYSIS_DETAILS
UNION ALL
SELECT 'CAPTURE_DURATION_NS', duration::VARCHAR FROM raw.ANALYSIS_DETAILS
UNION ALL
SELECT 'CAPTURE_START_UTC', utcTime FROM raw.TARGET_INFO_SESSION_START_TIME;
