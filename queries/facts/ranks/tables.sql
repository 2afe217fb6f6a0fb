/*
topic = "ranks"
progress = "who is late"
is_cross_rank = true
*/
-- The ranks of a run, over all traces. The views of the topic `ranks` define the columns.
CREATE TABLE IF NOT EXISTS facts.ranks (
    rank BIGINT, trace VARCHAR, process_id BIGINT, device_id BIGINT, gpu_id BIGINT, nccl_kernels BIGINT, nccl_ns BIGINT,
    clock_offset_ns DOUBLE, clock_drift_ppm DOUBLE, host_number BIGINT, gpu VARCHAR
);

CREATE TABLE IF NOT EXISTS facts.collectives (
    collective BIGINT, communicator VARCHAR, operation VARCHAR, bytes BIGINT, ranks BIGINT, seen_ranks BIGINT,
    step BIGINT,
    start_ns BIGINT, arrived_ns BIGINT, end_ns BIGINT, skew_ns BIGINT, transfer_ns BIGINT, waiting_ns BIGINT,
    last_rank BIGINT
);

CREATE TABLE IF NOT EXISTS facts.collective_ranks (
    collective BIGINT, rank BIGINT, start_ns BIGINT, end_ns BIGINT, waiting_ns BIGINT, bytes BIGINT
);

CREATE TABLE IF NOT EXISTS facts.messages (
    communicator VARCHAR, sender BIGINT, receiver BIGINT, bytes BIGINT, sent_ns BIGINT, sent_end_ns BIGINT,
    received_ns BIGINT,
    received_end_ns BIGINT, is_alone BOOLEAN
);

CREATE TABLE IF NOT EXISTS facts.rank_steps (
    step BIGINT, rank BIGINT, start_ns BIGINT, trace_start_ns BIGINT, wall_ns BIGINT, busy_ns BIGINT, waiting_ns BIGINT,
    transfer_ns BIGINT, idle_ns BIGINT,
    late_ns BIGINT, host_ns BIGINT
);

CREATE TABLE IF NOT EXISTS facts.rank_delays (
    rank BIGINT, cause VARCHAR, more_busy_ns DOUBLE, more_idle_ns DOUBLE, busy_ratio DOUBLE, host VARCHAR,
    place VARCHAR, host_ns DOUBLE, others_host_ns DOUBLE, stretch_ns DOUBLE, min_stretch_ns BIGINT,
    max_stretch_ns BIGINT, others_stretch_ns DOUBLE,
    stretch_before VARCHAR, launch_call_ratio DOUBLE
);

CREATE TABLE IF NOT EXISTS facts.rank_run (
    verdict VARCHAR, unit VARCHAR, steps BIGINT, ranks BIGINT, error_ns BIGINT, numbered_by VARCHAR, clock VARCHAR,
    missing VARCHAR,
    unmatched VARCHAR, doubled VARCHAR, groups VARCHAR, pipeline VARCHAR,
    compared_with VARCHAR, stages BIGINT, stage_messages BIGINT, bubble_pct DOUBLE
);

COMMENT ON VIEW collective_ranks IS 'One row per collective and rank. Times are on the clock of the first trace.';
COMMENT ON COLUMN collective_ranks.collective IS 'Number of the collective in `collectives`';
COMMENT ON COLUMN collective_ranks.rank IS 'The rank';
COMMENT ON COLUMN collective_ranks.start_ns IS 'When the rank arrived: its kernel started';
COMMENT ON COLUMN collective_ranks.end_ns IS 'When it left';
COMMENT ON COLUMN collective_ranks.waiting_ns IS
    'How long it waited for the last rank; NULL where not all ranks were seen';

COMMENT ON COLUMN collective_ranks.bytes IS
    'The size that the rank states: in an AlltoAll, what it sends to each rank on average; NULL where unknown';

COMMENT ON VIEW collectives IS
    'One row per collective of several ranks, matched by communicator and order. Times are on the clock of the '
    'first trace.';
COMMENT ON COLUMN collectives.collective IS 'Its number';
COMMENT ON COLUMN collectives.communicator IS
    'NCCL''s id of the communicator; NULL where the trace does not say: ranks are then matched by the order of '
    'streams and kernels';
COMMENT ON COLUMN collectives.operation IS 'AllReduce, AllGather …; NULL where the kernel''s name does not say';
COMMENT ON COLUMN collectives.bytes IS 'Size of the message, as in `nccl_kernels`';
COMMENT ON COLUMN collectives.ranks IS 'Ranks of the communicator whose traces are given';
COMMENT ON COLUMN collectives.seen_ranks IS 'How many of them have this collective in their capture';
COMMENT ON COLUMN collectives.step IS
    'The step that it is in, for the communicators that divide the run into steps; NULL outside of steps';
COMMENT ON COLUMN collectives.start_ns IS 'When the first rank arrived';
COMMENT ON COLUMN collectives.arrived_ns IS 'When the last rank arrived; NULL where not all ranks were seen';
COMMENT ON COLUMN collectives.end_ns IS 'When the first rank left';
COMMENT ON COLUMN collectives.skew_ns IS 'From the first to the last arrival; NULL where not all ranks were seen';
COMMENT ON COLUMN collectives.transfer_ns IS 'How long all ranks were in it; NULL where not all were seen';
COMMENT ON COLUMN collectives.waiting_ns IS
    'How long ranks waited for the last one, summed over the ranks; NULL where not all were seen';
COMMENT ON COLUMN collectives.last_rank IS
    'The rank that arrived last; NULL where the difference is smaller than the clock error';

COMMENT ON VIEW rank_run IS 'One row about the ranks as a whole; no row where no NCCL kernels ran, nor '
    'MPI collectives of a process with a GPU.';
COMMENT ON COLUMN rank_run.verdict IS
    'late: the same ranks make the others wait; moving: a different rank from step to step; host: the host of each '
    'rank works for most of the step, so no rank could be much earlier; even: none, or not by enough to detect; NULL '
    'where ranks are not matched';
COMMENT ON COLUMN rank_run.unit IS 'What `rank_steps` are: step, or collective where no steps were found';
COMMENT ON COLUMN rank_run.steps IS 'Number of them';
COMMENT ON COLUMN rank_run.ranks IS
    'Ranks of the largest communicator and of those that do the same side by side; all ranks where none are matched';
COMMENT ON COLUMN rank_run.error_ns IS
    'How far apart the ends of collectives are that ranks leave together, without the largest 5% of them';
COMMENT ON COLUMN rank_run.numbered_by IS
    'Where the rank numbers come from: NCCL, MPI, the launcher, the file names, or order';
COMMENT ON COLUMN rank_run.clock IS 'How well times of several ranks can be compared, as a sentence';
COMMENT ON COLUMN rank_run.missing IS
    'Which ranks are not in the traces, as a sentence; NULL where none is known to be missing';
COMMENT ON COLUMN rank_run.unmatched IS 'Which ranks and collectives could not be matched, as a sentence';
COMMENT ON COLUMN rank_run.doubled IS
    'Which traces have the same content as others, or claim the same rank, as a sentence';
COMMENT ON COLUMN rank_run.groups IS
    'Which ranks communicate in groups side by side, each doing the same, as a sentence; NULL where one communicator '
    'has all ranks';
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

COMMENT ON VIEW rank_steps IS
    'One row per step and rank, of the largest communicator and those that do the same side by side: where the '
    'rank''s time goes, from the end of the last collective before the step to the end of the step''s own last one, '
    'so that all ranks begin and end together. '
    'Where no steps were found, each collective is one.';
COMMENT ON COLUMN rank_steps.step IS 'Number of the step, or of the collective';
COMMENT ON COLUMN rank_steps.rank IS 'The rank';
COMMENT ON COLUMN rank_steps.start_ns IS 'When the last collective before it ended, on the clock of the first trace';
COMMENT ON COLUMN rank_steps.trace_start_ns IS 'The same in the time of the rank''s own trace';
COMMENT ON COLUMN rank_steps.wall_ns IS 'Step time; the parts add up to it';
COMMENT ON COLUMN rank_steps.busy_ns IS 'The GPU is busy with work other than communication';
COMMENT ON COLUMN rank_steps.waiting_ns IS 'The GPU only waits in collectives for ranks that have not arrived';
COMMENT ON COLUMN rank_steps.transfer_ns IS
    'The GPU only communicates: all ranks have arrived, or it is unknown which have';
COMMENT ON COLUMN rank_steps.idle_ns IS 'The GPU is idle';
COMMENT ON COLUMN rank_steps.host_ns IS
    'How long its host works, from the launch of the last collective before the step to that of the step''s own last '
    'one, without waits for the GPU; NULL where it is unknown, or no rank makes the others wait';
COMMENT ON COLUMN rank_steps.late_ns IS
    'How late the rank is: how much longer the others wait than it does, where it makes them wait; else 0';
