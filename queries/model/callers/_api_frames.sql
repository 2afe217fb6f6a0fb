/*
description = "The distinct functions in the call stacks of CUDA calls, and the lines of Python."
stored = true
progress = "call chains"
[columns]
frame_id = "Number of the function"
symbol_id = "Symbol of the function, in `strings`"
module_id = "Module of the function, in `strings`"
name = "The function and its module, as reports show it; NULL for frames that name no caller"
function = "The function"
module = "The file name of its module"
kind = "Whose code it is, by `_frame_kind`"
line = "The line, for Python's own call stacks; else NULL"
*/
-- The distinct functions in the call stacks of CUDA calls, and the lines of Python. The stacks themselves stay in the
-- raw tables: they may have hundreds of millions of frames.
WITH chain_rows AS (
    FROM raw.CUDA_CALLCHAINS
)
SELECT * REPLACE (frame_id::INTEGER AS frame_id)
FROM _numbered_frames('chain_rows');
