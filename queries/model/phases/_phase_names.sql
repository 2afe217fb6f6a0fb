/*
description = """What the names of NVTX ranges say about phases, steps and requests: one row per name that says any of
    it."""
[columns]
name = "The text of the ranges"
lead = "What it begins with, up to the first number: the same for ranges of one kind"
phase = "prefill, decode, mixed (both in one), forward, backward, optimizer; NULL where it names none"
is_serving = "Whether the phase is prefill, decode or both"
is_step = "Whether the name says step, iteration and so on, and nothing else"
is_request = "Whether the name is that of requests, without a phase"
is_exact = "Whether the name has a step, a batch, a request or a number, and not only a phase"
batch_size = "Sequences that it decodes, or prompts of a prefill; NULL where the name does not say"
prompt_tokens = "Tokens of the prompts, where the name says"
prefill_ids = "The requests that it prefills, or, without a phase, that it names"
decode_ids = "The requests that it decodes"
*/
-- What the names of NVTX ranges tell about phases: by word (prefill, decode_step, forward), or in the format in which
-- serving engines write their steps:
--     execute_context_1(256)_generation_3(3)                                    vLLM
--     [Executor] _forward_step 12: 1 ctx reqs, 256 ctx tokens, 3 gen reqs        TensorRT-LLM
--     step[EXTEND bs=1 toks=256], step[DECODE bs=3], step[MIXED bs=4]           SGLang
-- req=3, request_ids=[a, b] or request 3 names a request. A bare number after batch is the number of the batch, not its
-- size.
WITH engine_fields AS (
    SELECT
        name,
        regexp_extract(
            name, 'context_(\d+)\((\d+)\)_generation_(\d+)\(\d+\)', ['prefills', 'tokens', 'decodes']
        ) AS vllm,
        regexp_extract(
            name, '(\d+) ctx reqs?(?:, (\d+) ctx tokens)?, (\d+) gen reqs?', ['prefills', 'tokens', 'decodes']
        ) AS trt
    FROM (SELECT DISTINCT name FROM nvtx_ranges)
    WHERE NOT is_operator_name(name) AND NOT is_warm_up_name(name)
),
name_features AS (
    SELECT
        name,
        regexp_extract(name, '^.?[^=0-9(:\[]*') AS lead,
        try_cast(coalesce(nullif(vllm.prefills, ''), trt.prefills) AS BIGINT) AS prefills,
        try_cast(coalesce(nullif(vllm.decodes, ''), trt.decodes) AS BIGINT) AS decodes,
        regexp_matches(name, '(?i)step\[mixed|(^|[^a-z])mixed[ _-](batch|step)') AS is_mixed,
        regexp_matches(name, '(?i)(^|[^a-z])(pre-?fill(s|ed|ing)?|extend)([^a-z]|$)') AS says_prefill,
        regexp_matches(name, '(?i)(^|[^a-z])decod(e|es|ed|ing)([^a-z]|$)') AS says_decode,
        CASE
            WHEN regexp_matches(name, '(?i)(^|[^a-z])(forward|fwd)([^a-z]|$)') THEN 'forward'
            WHEN regexp_matches(name, '(?i)(^|[^a-z])(backward|bwd)([^a-z]|$)') THEN 'backward'
            WHEN regexp_matches(name, '(?i)(^|[^a-z])optimi[sz]er([^a-z]|$)') THEN 'optimizer'
        END AS training,
        regexp_matches(
            name, '(?i)(^|[^a-z])(step|iter|iteration|tick|engine|scheduler?|execute_model|run_batch|batch)([^a-z]|$)'
        ) AS says_step,
        regexp_extract(name, '(?i)(pre-?fill.*)', 1) AS from_prefill,
        regexp_extract(name, '(?i)(decod.*)', 1) AS from_decode,
        try_cast(
            regexp_extract(
                name, '(?i)(?:^|[^a-z])(?:bs *[=:]? *|(?:batch(?:[_ ]?size)?|num_seqs) *[=:] *)(\d+)', 1
            ) AS BIGINT
        ) AS given_batch,
        try_cast(coalesce(nullif(vllm.tokens, ''), nullif(trt.tokens, ''),
            regexp_extract(name,
                '(?i)(?:^|[^a-z])(?:num_|prompt_)?(?:tokens?|toks?|len) *[=:] *(\d+)', 1)) AS BIGINT) AS given_tokens
    FROM engine_fields
),
names_with_requests AS (
    SELECT
        *,
        coalesce(prefills > 0, says_prefill OR is_mixed) AS has_prefill,
        coalesce(decodes > 0, says_decode OR is_mixed) AS has_decode,
        _request_ids(name) AS ids,
        CASE
            WHEN says_prefill AND says_decode THEN _request_ids(regexp_replace(from_prefill, '(?i)decod.*', ''))
        END AS prefill_ids,
        CASE
            WHEN says_prefill AND says_decode THEN _request_ids(regexp_replace(from_decode, '(?i)pre-?fill.*', ''))
        END AS decode_ids
    FROM name_features
)
SELECT
    name,
    lead,
    CASE
        WHEN has_prefill AND has_decode THEN 'mixed'
        WHEN has_prefill THEN 'prefill'
        WHEN has_decode THEN 'decode'
        WHEN prefills IS NULL THEN training
    END AS phase,
    has_prefill OR has_decode AS is_serving,
    says_step AND phase IS NULL AND len(ids) = 0 AS is_step,
    len(ids) > 0 AND phase IS NULL AS is_request,
    says_step OR prefills IS NOT NULL OR given_batch IS NOT NULL OR len(ids) > 0
        OR regexp_matches(name, '[0-9]') AS is_exact,
    coalesce(given_batch, nullif(CASE WHEN has_decode THEN decodes ELSE prefills END, 0),
        nullif(
            CASE
                WHEN prefills IS NULL AND NOT (has_prefill AND has_decode) THEN len(ids)
                WHEN prefills IS NULL THEN len(decode_ids)
            END,
            0
        )) AS batch_size,
    CASE WHEN has_prefill THEN given_tokens END AS prompt_tokens,
    CASE
        WHEN phase = 'prefill' OR phase IS NULL THEN ids WHEN phase = 'mixed' THEN coalesce(prefill_ids, []) ELSE []
    END AS prefill_ids,
    CASE WHEN phase = 'decode' THEN ids WHEN phase = 'mixed' THEN coalesce(decode_ids, []) ELSE [] END AS decode_ids
FROM names_with_requests
WHERE has_prefill OR has_decode OR says_step OR len(ids) > 0 OR training IS NOT NULL;
