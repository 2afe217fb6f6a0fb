/*
description = "Messages of nsys about the capture: lost events, buffers, versions."
[columns]
start_ns = "When nsys wrote it"
severity = "info, warning, error, verbose"
source = "injection, daemon, analysis"
message = "The message"
is_cuda_loss = """Whether, by the message, calls or GPU activity of CUDA were lost, so that counts and times are lower
    bounds; false where only other data are incomplete"""
*/
SELECT
    d.timestamp AS start_ns, v.word AS severity, s.word AS source, d.text AS message, pid_of(d.globalPid) AS process_id,
    -- Missing CPU samples, context switches, counters, data of other APIs and of unified memory change no number about
    -- CUDA.
    v.word IN ('error', 'warning') AND CASE
        WHEN regexp_extract(
            d.text, '(?i)\b(lost|dropped|drops|overflow|incomplete|discarded|truncated)\b|not been started correctly'
        ) <> '' THEN
            regexp_extract(d.text, '(?i)CUDA|CUPTI|kernel|buffer|injection') <> ''
                OR regexp_extract(d.text, _other_data()) = ''
        ELSE v.word = 'error' AND regexp_extract(d.text, _other_data()) = ''
    END AS is_cuda_loss
FROM raw.DIAGNOSTIC_EVENT AS d
LEFT JOIN facts.enum_words AS v ON v.enum = 'severity' AND v.id = d.severity
LEFT JOIN facts.enum_words AS s ON s.enum = 'diagnostic source' AND s.id = d.source;
