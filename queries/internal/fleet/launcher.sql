-- What the environment says of which rank the process is: as queries/facts/ranks/environment.sql reads it, and nothing else.
SELECT name, value FROM raw.META_DATA_CAPTURE
WHERE regexp_matches(
    value, '^(RANK|OMPI_COMM_WORLD_RANK|SLURM_PROCID|PMI_RANK|WORLD_SIZE|OMPI_COMM_WORLD_SIZE|SLURM_NTASKS|PMI_SIZE)="?[0-9]{1,9}"?$'
)
