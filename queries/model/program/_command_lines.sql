CREATE VIEW _command_lines AS
SELECT
    split_part(name, ':', 1) AS process,
    string_agg(value, ' ' ORDER BY try_cast(split_part(name, '_', -1) AS BIGINT) NULLS FIRST) AS line
FROM capture
WHERE regexp_matches(name, '^PROCESS_\d+:(COMMAND|ARGUMENT_\d+)$')
GROUP BY process;

COMMENT ON VIEW _command_lines IS 'The command of each process that nsys started, with its arguments.';
COMMENT ON COLUMN _command_lines.process IS 'PROCESS_ and a number, as in `capture`';
COMMENT ON COLUMN _command_lines.line IS 'The command line';
