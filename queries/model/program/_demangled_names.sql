/*
description = """Demangled names of plain functions whose parameters have types of the language. Of some compilers
    (OpenACC and OpenMP of nvc++), nsys records the mangled name only."""
stored = true
needs = "raw.StringIds WHERE starts_with(value, '_Z') AND contains(value, '_gpu')"
[columns]
name_id = "Id of the name, as in `strings`"
name = "The demangled name"
*/
-- OpenACC and OpenMP name kernels after their function and line: NAME_LINE_gpu. A fact of its own: most statements that
-- read names would bind these functions, which takes 9 ms.
SELECT
    id AS name_id,
    _function_with_types(
        regexp_replace(value, '^_Z[0-9]{1,4}', ''), TRY_CAST(regexp_extract(value, '^_Z([0-9]{1,4})', 1) AS INTEGER)
    ) AS name
FROM raw.StringIds
WHERE regexp_extract(value, '^_Z[1-9][0-9]{0,3}[A-Za-z_]\w*_gpu') <> '';
