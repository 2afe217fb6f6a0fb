CREATE VIEW rank_run AS
FROM facts.rank_run;

COMMENT ON VIEW rank_run IS 'One row about the ranks as a whole; no row where no NCCL kernels ran.';
COMMENT ON COLUMN rank_run.verdict IS
    'late: the same ranks make the others wait; moving: a different rank from step to step; even: none, or not by '
    'enough to detect; NULL where ranks are not matched';
COMMENT ON COLUMN rank_run.unit IS 'What `rank_steps` are: step, or collective where no steps were found';
COMMENT ON COLUMN rank_run.steps IS 'Number of them';
COMMENT ON COLUMN rank_run.ranks IS 'Ranks of the largest communicator; all ranks where none are matched';
COMMENT ON COLUMN rank_run.error_ns IS
    'How far apart the ends of collectives are that ranks leave together, without the largest 5 % of them';
COMMENT ON COLUMN rank_run.numbered_by IS
    'Where the rank numbers come from: NCCL, the launcher, the file names, or order';
COMMENT ON COLUMN rank_run.clock IS 'How well times of several ranks can be compared, as a sentence';
COMMENT ON COLUMN rank_run.missing IS
    'Which ranks are not in the traces, as a sentence; NULL where none is known to be missing';
COMMENT ON COLUMN rank_run.unmatched IS 'Which ranks and collectives could not be matched, as a sentence';
COMMENT ON COLUMN rank_run.doubled IS
    'Which traces have the same content as others, or claim the same rank, as a sentence';
COMMENT ON COLUMN rank_run.pipeline IS
    'For ranks that are the stages of a pipeline: how long they usually wait for each other, as a sentence; '
    'lateness is then judged against what a rank usually does, and not against the others';
COMMENT ON COLUMN rank_run.compared_with IS
    'What a rank''s time in a step is compared with to find which rank is late: others, or itself in the other '
    'steps, where messages between ranks make them wait';
COMMENT ON COLUMN rank_run.stages IS
    'Stages of a pipeline: ranks that send to the next one in a row, times the stages of each where the last one '
    'sends on to the first; NULL where the ranks are none, or messages could not be matched';
COMMENT ON COLUMN rank_run.stage_messages IS 'Messages from one stage to the next in a step, usually microbatches';
COMMENT ON COLUMN rank_run.bubble_pct IS
    'Share of the usual step in which a rank of a pipeline waits for the others; a mean over ranks';
