-- Processes that may be ranks whose CUDA calls are not recorded: they have the name of a process that runs NCCL, which
-- needs several ranks, but no CUDA call. Workers that load data look the same.
CREATE VIEW _silent_ranks AS
WITH nccl_processes AS (
    SELECT DISTINCT k.process_id
    FROM _operation_counts AS k
    SEMI JOIN (FROM kernel_names WHERE provenance = 'NCCL') AS n USING (name_id)
)
SELECT process_id, name
FROM processes
WHERE process_id NOT IN (SELECT process_id FROM _call_counts)
    AND name IN (SELECT name FROM processes SEMI JOIN nccl_processes USING (process_id))
    AND (SELECT count(*) FROM nccl_processes) = 1;

COMMENT ON VIEW _silent_ranks IS 'Processes that may be ranks whose CUDA calls are not recorded.';
COMMENT ON COLUMN _silent_ranks.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _silent_ranks.name IS 'Name of the executable';
