/* progress = "settings" */
-- The settings of the capture and the export, each with its raw table as `origin`. The environment, the host and the
-- user are removed, and what looks like a secret in a command line is masked.
CREATE TABLE IF NOT EXISTS facts.captured (origin VARCHAR, name VARCHAR, value VARCHAR);
