/*
description = """What the blocks of a kind of memory hold together, one row after each allocation and each free; frees
    come first."""
[columns]
memory = "device, managed or pinned"
at_ns = "When a block was allocated or freed"
held_bytes = "The sum of the sizes of all blocks of this process, device and kind"
*/
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
