/* parameters = ["function", "module"] */
-- Whose code a frame is, by its module and its function. A program that links the CUDA runtime statically has the
-- runtime's functions in its own module: their names identify them, the wrappers of CUDA's headers, and the stubs that
-- nvcc writes for kernels.
CASE
    WHEN regexp_matches(module, '\.pyx?$') OR regexp_matches(function, '\.py\b') THEN 'python'
    WHEN regexp_matches(function, '^P?MPI_[A-Z]\w+$') THEN 'entry'  -- also if nsys's wrapper replaces it
    WHEN regexp_matches(module, '(?i)^libToolsInjection|^libcupti|^libInterceptorInjection|^libnvperf|nsight|^libnsys')
        THEN 'profiler'
    WHEN regexp_matches(module, '(?i)^libcuda\.so|^libcuda\.dylib|^nvcuda|^libnvidia-') THEN 'driver'
    WHEN regexp_matches(module, '(?i)^libcudart|^cudart')
        OR regexp_matches(
            function,
            '^(static )?(cudaError(_t|_enum)? '
            ')?cuda[A-Z]\w*\s*(<|\(|$)|^libcudart_static|^cu[A-Z]\w+$|^__device_stub__|^__cuda\w+$'
        )
        THEN 'runtime'
    WHEN regexp_matches(coalesce(module, ''), '^\[.*\]$|^$') AND function IS NULL THEN 'unknown'
    WHEN regexp_matches(function, '^at::_ops::') THEN 'operator'
    WHEN regexp_matches(function, '^(\w[\w:<>,&* ]* )?at::native::') THEN 'native'
    WHEN regexp_matches(
        function, '^(cublas(Lt|Xt)?|cudnn|cufft|cusolver|cusparse(Lt)?|curand|cutensor|nccl|nvjpeg|npp)[A-Z]\w*$'
    )
        THEN 'entry'
    WHEN regexp_matches(
        module,
        '(?i)^(lib(c|m|pthread|dl|rt|gcc_s|stdc\+\+|c\+\+|c\+\+abi|unwind)|ld-linux[\w-]*|ld)([.-][0-9.]*)?\.?(so'
        '|dylib)|^\[vdso\]|^\[kernel|^vmlinux|^(ntdll|kernel32|ucrtbase|kernelbase)'
    )
        THEN 'system'
    WHEN regexp_matches(module, '(?i)^(lib)?python[0-9.]*(d|t)?(\.so|\.exe|\.dll|$)')
        OR regexp_matches(
            function,
            '^(_start|__libc_start_main(_impl)?|__libc_start_call_main|start_thread|clone3?|_PyEval_EvalFrameDefault)$'
        )
        THEN 'interpreter'
    WHEN regexp_matches(
        module, '(?i)^lib(torch|c10|cublas|cudnn|cufft|cusolver|cusparse|curand|cutensor|nccl|nvjpeg|npp)'
    )
        OR regexp_matches(function, '^(\w[\w:<>,&* ]* )?(c10|torch|pybind11|thrust|cub|CUB_\w+|THRUST_\w+)::')
        THEN 'library'
    ELSE 'program'
END;
