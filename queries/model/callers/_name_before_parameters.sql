/* parameters = ["function"] */
-- The name of a function or a kernel without its parameters and without the type that kernels return.
nullif(split_part(replace(regexp_replace(function, '^void ', ''), '(anonymous namespace)', '{anonymous}'), '(', 1), '');
