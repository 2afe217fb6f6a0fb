/*
description = """The error of a kernel that a call returned, after which its context cannot be used; no row in most
    traces."""
[columns]
error = "The number of the error, as in cudaError_t"
*/
SELECT min(return_value) AS error
FROM outer_api_calls
WHERE return_value IN (700, 702, 710, 714, 715, 716, 717, 718, 719)
HAVING count(*) > 0;
