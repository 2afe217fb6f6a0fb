-- A row if the trace has a name of NCCL or MPI, which few programs have: a cheap check on the raw names, before others.
SELECT 1 AS is_found
FROM raw.StringIds
WHERE (contains(value, 'nccl') OR starts_with(value, 'MPI_')) AND NOT contains(value, chr(0))
LIMIT 1
