CREATE VIEW _left_out AS
FROM facts.left_out;

COMMENT ON VIEW _left_out IS
    'One row where a scope by --nvtx leaves out what other threads launched meanwhile; no row where it leaves '
    'nothing out.';
COMMENT ON COLUMN _left_out.sentence IS 'How much, and how to keep it';
