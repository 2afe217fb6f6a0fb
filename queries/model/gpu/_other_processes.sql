CREATE VIEW _other_processes AS
FROM facts.other_processes;

COMMENT ON VIEW _other_processes IS
    'What a report about one process says where several ran on GPUs: one row; no row where only one did.';
COMMENT ON COLUMN _other_processes.sentence IS 'That they did, and which';
