/*
description = """The operations that do not compute, of which there are few: kernels that communicate, and copies but
    those within a GPU's memory."""
stored = true
[columns]
start_ns = "When the operation started on the GPU"
end_ns = "When the operation ended; never before start_ns"
level = "Level of the operation, as in `_levelled_work`"
*/
-- A fact of its own, because DuckDB materializes what one statement reads twice.
SELECT gpu_id, start_ns, end_ns, level
FROM _levelled_work
WHERE level > 0;
