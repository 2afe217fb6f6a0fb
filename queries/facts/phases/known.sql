-- What a step holds depends on nothing but when it is: of those that are steps of the trace as well, that is known.
-- They are taken out of what is to be counted, as is what is no step of a phase.
CREATE TABLE IF NOT EXISTS internal.step_known AS
SELECT * EXCLUDE (phase_step, phase, batch_size, prompt_tokens, graph) FROM facts.phase_steps LIMIT 0;

CREATE OR REPLACE TABLE internal.phase_pieces AS FROM internal.step_pieces WHERE is_step;

CREATE OR REPLACE TABLE internal.phase_known AS
SELECT p.piece, k.* EXCLUDE (thread_id)
FROM internal.phase_pieces AS p
JOIN internal.step_known AS k USING (process_id, host_start_ns, host_end_ns, start_ns, end_ns);

DELETE FROM internal.step_pieces WHERE NOT is_step OR piece IN (SELECT piece FROM internal.phase_known)
