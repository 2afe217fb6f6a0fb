CREATE VIEW collectives AS
FROM facts.collectives;

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
    'The step that it is in, for ranks of the largest communicator; NULL outside of steps';
COMMENT ON COLUMN collectives.start_ns IS 'When the first rank arrived';
COMMENT ON COLUMN collectives.arrived_ns IS 'When the last rank arrived; NULL where not all ranks were seen';
COMMENT ON COLUMN collectives.end_ns IS 'When the first rank left';
COMMENT ON COLUMN collectives.skew_ns IS 'From the first to the last arrival; NULL where not all ranks were seen';
COMMENT ON COLUMN collectives.transfer_ns IS 'How long all ranks were in it; NULL where not all were seen';
COMMENT ON COLUMN collectives.waiting_ns IS
    'How long ranks waited for the last one, summed over the ranks; NULL where not all were seen';
COMMENT ON COLUMN collectives.last_rank IS
    'The rank that arrived last; NULL where the difference is smaller than the clock error';
