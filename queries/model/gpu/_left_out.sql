CREATE VIEW _left_out AS
FROM facts.left_out;

COMMENT ON VIEW _left_out IS 'What is said of a scope by --nvtx that leaves out what other threads launched meanwhile: one row; none where it leaves nothing out.';
COMMENT ON COLUMN _left_out.sentence IS 'How much, and how to keep it';
