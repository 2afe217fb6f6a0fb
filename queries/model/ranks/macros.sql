-- Whether an MPI function only receives. MPI_Sendrecv is recorded with what it sends.
CREATE MACRO is_mpi_receive(name) AS regexp_matches(name, '^MPI_I?m?recv', 'i');

-- The kind of an MPI function, as in `mpi_calls`, where nsys records names alone.
CREATE MACRO mpi_kind(name) AS CASE
    WHEN regexp_matches(name, '_(init|create|free|split|dup|rank|size|Init|Finalize|Init_thread)$') THEN 'other'
    WHEN regexp_matches(name, '^MPI_(Wait|Test|Start)') THEN 'wait'
    WHEN regexp_matches(name, '^MPI_(I?[bsr]?send|I?m?recv|I?sendrecv|I?m?probe)', 'i') THEN 'message'
    WHEN regexp_matches(
        name, '^MPI_(I?(barrier|bcast|gather|scatter|allgather|alltoall|allreduce|reduce|scan|exscan|neighbor_))', 'i'
    ) THEN 'collective'
    ELSE 'other'
END;

-- Ranks in a sentence: rank 3; ranks 1, 2 and 4; ranks 0, 1, 2, 3, 4, 5, 6, 7 and 12 more.
CREATE MACRO ranks_text(numbers) AS CASE WHEN len(numbers) = 1 THEN 'rank ' ELSE 'ranks ' END
    || array_to_string(numbers[:8], ', ')
    || CASE WHEN len(numbers) > 8 THEN ' and ' || (len(numbers) - 8) || ' more' ELSE '' END;
