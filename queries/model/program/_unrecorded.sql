CREATE VIEW _unrecorded AS
FROM facts.unrecorded;

COMMENT ON VIEW _unrecorded IS
    'What is missing from a trace, although other events show that it happened; no rows in most traces.';
COMMENT ON COLUMN _unrecorded.what IS 'calls, kernels or copies';
COMMENT ON COLUMN _unrecorded.sentence IS 'That it is missing, and what cannot be determined without it';
