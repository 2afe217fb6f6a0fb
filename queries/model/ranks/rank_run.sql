CREATE VIEW rank_run AS
FROM facts.rank_run;

COMMENT ON VIEW rank_run IS 'One row about the ranks as a whole; none where nothing of NCCL ran.';
COMMENT ON COLUMN rank_run.verdict IS 'late: the same ranks make the others wait; moving: now this one and now that; even: nobody, or not so that it could be told; NULL where ranks are not matched';
COMMENT ON COLUMN rank_run.unit IS 'What `rank_steps` are: step, or collective where no steps are known';
COMMENT ON COLUMN rank_run.steps IS 'How many of them there are';
COMMENT ON COLUMN rank_run.ranks IS 'Ranks of the largest communicator; of all where none are matched';
COMMENT ON COLUMN rank_run.error_ns IS 'How far ends of collectives are apart that ranks leave together, but for the twentieth of them that is farthest';
COMMENT ON COLUMN rank_run.numbered_by IS 'Who says which rank is which: NCCL, the launcher, the files'' names, or order';
COMMENT ON COLUMN rank_run.clock IS 'How well times of several ranks can be compared, as a sentence';
COMMENT ON COLUMN rank_run.missing IS 'Which ranks are not in the traces, as a sentence; NULL where none is known to be missing';
COMMENT ON COLUMN rank_run.unmatched IS 'Which ranks and collectives could not be matched, as a sentence';
COMMENT ON COLUMN rank_run.doubled IS 'Which traces hold what others do, or say that they are the same rank, as a sentence';
COMMENT ON COLUMN rank_run.pipeline IS 'Of ranks that are the stages of a pipeline: how long these usually wait for each other, as a sentence; then who is late is judged by what a rank usually does, and not from the others';
COMMENT ON COLUMN rank_run.compared_with IS 'What a rank''s time in a step is compared with to tell who is late: others, or itself in the other steps, where messages between ranks make them wait';
COMMENT ON COLUMN rank_run.stages IS 'Stages of a pipeline: ranks that send to the next one in a row; NULL where the ranks are none, or messages could not be matched';
COMMENT ON COLUMN rank_run.stage_messages IS 'Messages from one stage to the next in a step, as a rule microbatches';
COMMENT ON COLUMN rank_run.bubble_pct IS 'Share of the usual step that a rank of a pipeline waits for the others; a mean over ranks';
