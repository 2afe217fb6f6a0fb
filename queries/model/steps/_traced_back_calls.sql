/*
description = "The CUDA calls whose backtrace is in a separate row: exports of nsys 2022 have it there."
[columns]
correlation_id = "The call's id"
*/
-- These exports repeat each call as a row of event class 67 with the id of a chain, also where no chain was recorded.
SELECT DISTINCT pid_of(globalTid) AS process_id, correlationId AS correlation_id
FROM raw.CUPTI_ACTIVITY_KIND_RUNTIME
WHERE eventClass = 67 AND callchainId IN (SELECT id FROM raw.CUDA_CALLCHAINS);
