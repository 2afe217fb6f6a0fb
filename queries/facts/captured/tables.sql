/* progress = "settings" */
-- The settings of the capture and the export, of which raw table each is: without the environment, the host and the
-- user, and with a mask for what looks like a secret in a command line.
CREATE TABLE IF NOT EXISTS facts.captured (origin VARCHAR, name VARCHAR, value VARCHAR);
