-- Remove what is not a step of a phase from the steps to count.
DELETE FROM internal.step_pieces WHERE NOT is_step;

CREATE OR REPLACE TABLE internal.phase_pieces AS FROM internal.step_pieces
