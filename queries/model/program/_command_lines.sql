/*
description = "The command of each process that nsys started, with its arguments."
[columns]
process = "PROCESS_ and a number, as in `capture`"
line = "The command line"
*/
SELECT
    split_part(name, ':', 1) AS process,
    string_agg(value, ' ' ORDER BY try_cast(split_part(name, '_', -1) AS BIGINT) NULLS FIRST) AS line
FROM capture
WHERE regexp_matches(name, '^PROCESS_\d+:(COMMAND|ARGUMENT_\d+)$')
GROUP BY process;
