/*
description = """One row per distinct kernel name, with the construct that it is, by its name
    (queries/catalog/constructs)."""
stored = true
[columns]
name_id = "Id of the name, as in `kernels`"
construct = "The construct; NULL if no entry of the catalog has this name"
*/
SELECT name_id, construct_of(name) AS construct FROM kernel_names;
