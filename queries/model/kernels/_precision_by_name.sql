/* parameters = ["name", "family"] */
-- The precision that a kernel computes in, by its name; NULL if the name does not tell.
CASE
    WHEN family NOT IN ('gemm', 'attention')
        THEN CASE WHEN regexp_matches(name, '\bdouble\b') THEN 'fp64' ELSE 'fp32' END
    WHEN regexp_matches(name, '(?i)tf32') THEN 'tf32'
    WHEN regexp_matches(name, '(?i)e4m3|e5m2|fp8|float8|nvjet_\w*?_q') THEN 'fp8'
    WHEN regexp_matches(name, '(?i)f64|dgemm|double')
        THEN CASE WHEN regexp_matches(name, 'tensor') THEN 'fp64_tensor' ELSE 'fp64' END
    WHEN regexp_matches(name, '(?i)s8|int8|imma') THEN 'int8'
    WHEN regexp_matches(name, '(?i)f16|float16|half|hgemm|h16816|hmma|nvjet_\w*?_[ht]s[hts]_') THEN 'fp16'
    WHEN regexp_matches(name, '(?i)sgemm|ffma|simt|f32f32') THEN 'fp32'
END;
