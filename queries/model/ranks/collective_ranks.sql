CREATE VIEW collective_ranks AS
FROM facts.collective_ranks;

COMMENT ON VIEW collective_ranks IS 'One row per collective and rank. Times are on the clock of the first trace.';
COMMENT ON COLUMN collective_ranks.collective IS 'Number of the collective in `collectives`';
COMMENT ON COLUMN collective_ranks.rank IS 'The rank';
COMMENT ON COLUMN collective_ranks.start_ns IS 'When the rank arrived: its kernel started';
COMMENT ON COLUMN collective_ranks.end_ns IS 'When it left';
COMMENT ON COLUMN collective_ranks.waiting_ns IS
    'How long it waited for the last rank; NULL where not all ranks were seen';
