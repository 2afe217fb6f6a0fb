CREATE VIEW _held_memory AS
SELECT
    process_id, device_id, memory, at_ns,
    sum(change_bytes) OVER (
        PARTITION BY process_id, device_id, memory ORDER BY at_ns, change_bytes ROWS UNBOUNDED PRECEDING
    )::BIGINT AS held_bytes
FROM (
    SELECT process_id, device_id, memory, start_ns AS at_ns, size_bytes AS change_bytes FROM memory_blocks
    UNION ALL
    SELECT process_id, device_id, memory, end_ns, -size_bytes FROM memory_blocks WHERE end_ns IS NOT NULL
);

COMMENT ON VIEW _held_memory IS
    'What the blocks of a kind of memory hold together, one row after each allocation and each free; frees come first.';
COMMENT ON COLUMN _held_memory.process_id IS 'Operating system''s process id';
COMMENT ON COLUMN _held_memory.device_id IS 'CUDA device number within the process';
COMMENT ON COLUMN _held_memory.memory IS 'device, managed or pinned';
COMMENT ON COLUMN _held_memory.at_ns IS 'When a block was allocated or freed';
COMMENT ON COLUMN _held_memory.held_bytes IS 'The sum of the sizes of all blocks of this process, device and kind';
