-- A name with # for its numbers: step 1 and step 2 are both step #. A number within a word is part of a name: conv2d,
-- gemm_fp8. It counts after some words: layer12. Neighboring numbers share a separator, so there are two passes.
CREATE MACRO _fold_numbers(name) AS regexp_replace(name, '(^|[^A-Za-z0-9])[0-9]+($|[^A-Za-z0-9])', '\1#\2', 'g');
CREATE MACRO folded_name(name) AS _fold_numbers(_fold_numbers(regexp_replace(
    regexp_replace(name, ',? *seq *= *[0-9]+', '', 'g'),
    '(?i)(step|iter|iteration|layer|block|batch|epoch|frame|token|phase|level)[0-9]+', '\1#', 'g'
)));

-- The folded name, if several names differ only in their numbers; else the name itself: conv_fp16 stays unchanged.
CREATE MACRO fold(name) AS CASE
    WHEN min(name) OVER (PARTITION BY folded_name(name)) <> max(name) OVER (PARTITION BY folded_name(name))
        THEN folded_name(name)
    ELSE name
END;

-- Whether the name of an NVTX range says warm-up. DuckDB compiles the pattern of regexp_matches three times.
CREATE MACRO is_warm_up_name(name) AS regexp_extract(name, '(?i)(^|[^a-z])warm(ing)?[ _-]?up') <> '';

-- Whether an NVTX range is an operator of a framework, such as aten::copy_.
CREATE MACRO is_operator_name(name) AS regexp_extract(
    name, '^(aten|prims?|autograd|torch|c10d)::|\b(op_id|seq) = [0-9]'
) <> '';

-- Whether the domain of an NVTX range is that of a library, which marks its own calls.
CREATE MACRO is_library_domain(domain) AS regexp_extract(
    domain, '(?i)^(lib)?(cccl|cublas|cudf|cudnn|cudss|cufft|curand|cusolver|cusparse|cutensor|nccl|npp|nvjpeg|nvshmem)'
) <> '';

-- The requests that a text names: req=3, request_ids=[a, b], or a number as in request 3.
CREATE MACRO _request_ids(name) AS list_filter(list_transform(string_split(coalesce(
    nullif(
        regexp_extract(name, '(?i)(?:^|[^a-z])req(?:uest)?s?(?:[_ ]?ids?)? *[=:#] *[\[(]?([\w.-]+(?:, *[\w.-]+)*)', 1),
        ''
    ),
    regexp_extract(name, '(?i)(?:^|[^a-z])req(?:uest)?s?(?:[_ ]?ids?)?[ _-]#?(\d+(?:, *\d+)*)', 1)
), ','), lambda id: trim(id)), lambda id: id <> '');
