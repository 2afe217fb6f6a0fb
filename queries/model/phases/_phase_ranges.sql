CREATE VIEW _phase_ranges AS
FROM facts.phase_ranges;

COMMENT ON VIEW _phase_ranges IS 'The outermost NVTX ranges that name a phase, with the step that each is part of.';
COMMENT ON COLUMN _phase_ranges.phase IS 'What its name says: prefill, decode, mixed, forward, backward or optimizer';
COMMENT ON COLUMN _phase_ranges.step_phase IS 'What its step is: mixed where it prefills and decodes';
COMMENT ON COLUMN _phase_ranges.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _phase_ranges.thread_id IS 'Thread that opened it';
COMMENT ON COLUMN _phase_ranges.start_ns IS 'When it was opened';
COMMENT ON COLUMN _phase_ranges.end_ns IS 'When it was closed';
COMMENT ON COLUMN _phase_ranges.step_start_ns IS
    'When its step began: a range around it that is named step, else itself';
COMMENT ON COLUMN _phase_ranges.step_end_ns IS 'When its step ended';
COMMENT ON COLUMN _phase_ranges.batch_size IS 'Sequences that it decodes, or prompts of a prefill, as the name says';
COMMENT ON COLUMN _phase_ranges.prompt_tokens IS 'Tokens of the prompts, as the name says';
COMMENT ON COLUMN _phase_ranges.prefill_ids IS 'The requests that it prefills, as the name says';
COMMENT ON COLUMN _phase_ranges.decode_ids IS 'The requests that it decodes, as the name says';
