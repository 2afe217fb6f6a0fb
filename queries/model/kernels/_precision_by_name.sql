/* parameters = ["name", "family"] */
-- The precision that a kernel computes in, by its name; NULL if the name does not tell.
CASE
    WHEN family NOT IN ('gemm', 'attention')
        THEN CASE WHEN regexp_matches(name, '\bdouble\b') THEN 'fp64' ELSE 'fp32' END
    -- Operands of 16 bits convert the other one. Floats of 8, 6 and 4 bits have one rate, except scaled blocks of 4
    -- bits with twice the depth of the tile.
    WHEN regexp_matches(_cutlass_operands(name), '^(b1|[us][24])( [us][24])?$') THEN NULL
    WHEN regexp_matches(_cutlass_operands(name), '\b(b?f16)\b') THEN 'fp16'
    WHEN regexp_matches(_cutlass_operands(name), '^(e2m1|f4) (e2m1|f4)$') AND regexp_matches(name, '_bs.*x256_\d')
        THEN 'fp4'
    WHEN regexp_matches(_cutlass_operands(name), '\b(e\dm\d|f[468])\b') THEN 'fp8'
    WHEN regexp_matches(_cutlass_operands(name), '\b[us]8\b') THEN 'int8'
    WHEN regexp_matches(name, '(?i)tf32') THEN 'tf32'
    WHEN regexp_matches(name, '(?i)e4m3|e5m2|fp8|float8|nvjet_\w*?_q') THEN 'fp8'
    WHEN regexp_matches(name, '(?i)f64|\bdgemm|_dgemm|\ddgemm|double')
        THEN CASE WHEN regexp_matches(name, 'tensor') THEN 'fp64_tensor' ELSE 'fp64' END
    WHEN regexp_matches(name, '(?i)s8|int8|imma') THEN 'int8'
    WHEN regexp_matches(name, '(?i)f16|float16|half|hgemm|h16816|hmma|nvjet_\w*?_[ht]s[hts]_') THEN 'fp16'
    WHEN regexp_matches(name, '(?i)sgemm|ffma|simt|f32f32') THEN 'fp32'
END;
