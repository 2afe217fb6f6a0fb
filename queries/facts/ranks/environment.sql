-- Which rank the launcher said that the profiled process is, of how many: nothing else of the environment is looked at.
SELECT regexp_extract(value, '^(\w+)=', 1) AS name, regexp_extract(value, '([0-9]+)"?$', 1)::BIGINT AS number
FROM raw.META_DATA_CAPTURE
WHERE regexp_matches(
    value, '^(RANK|OMPI_COMM_WORLD_RANK|SLURM_PROCID|PMI_RANK|WORLD_SIZE|OMPI_COMM_WORLD_SIZE|SLURM_NTASKS|PMI_SIZE)="?[0-9]{1,9}"?$'
)
