/* parameters = ["name"] */
-- The types of both operands in a name of CUTLASS's library, with a space between them; empty if it has none:
-- cutlass3x_sm100_bstensorop_gemm_ue8m0xe2m1_ue8m0xe2m1_f32_..., cutlass_tensorop_s16816gemm_bf16_s8_128x16_...
trim(regexp_replace(
    regexp_extract(
        name,
        'cutlass\w*_\w*?(gemm|fprop|dgrad|wgrad)(_(grouped|analytic|optimized|few_channels|fixed_channels))*'
        '((_((u?e\d+m\d+|\d+x\d+f32)x)?(b1|[us][248]|tf32|b?f16|f32|f64|e[2-5]m[1-3]|f[468])(n[dh]*wc)?){1,2})',
        4
    ),
    '_(?:(?:u?e\d+m\d+|\d+x\d+f32)x)?(b1|[us][248]|tf32|b?f16|f32|f64|e[2-5]m[1-3]|f[468])(?:n[dh]*wc)?', ' \1', 'g'
));
