-- A global id of nsys packs 8 bits of host, 8 of VM, 24 of process and 24 of thread. The loader makes `pid_of`, which
-- gives the process (nsys_insight/ingest/processes.py).
CREATE MACRO tid_of(global_id) AS global_id & 16777215;

-- One key for a call of a process: a join on it takes half as long as a join on two columns. The id is multiplied, not
-- shifted, because calls inside other calls have negative ids (nsys_insight/ingest/raw.py).
CREATE MACRO call_of(correlation_id, process_id) AS correlation_id * 16777216 + process_id;

-- One key for a thread of a process.
CREATE MACRO thread_of(thread_id, process_id) AS process_id << 24 | thread_id;

-- The clocks of host and GPU are fitted to each other, so an event may end before it starts. Its duration is then 0;
-- start_ns and end_ns stay as recorded. Without an end, the duration is NULL.
CREATE MACRO duration(start_ns, end_ns) AS CASE WHEN end_ns < start_ns THEN 0 ELSE end_ns - start_ns END;

-- Whether a line of the environment is a launcher's: the rank of the process, or the number of ranks. No other line is
-- read.
CREATE MACRO is_launcher_line(line) AS regexp_matches(
    line,
    '^(RANK|OMPI_COMM_WORLD_RANK|SLURM_PROCID|PMI_RANK|WORLD_SIZE|OMPI_COMM_WORLD_SIZE|SLURM_NTASKS'
    '|PMI_SIZE)="?[0-9]{1,9}"?$'
);

-- Whether a name fits a pattern, in which * stands for any text and ? for one character. RE2 takes linear time; the
-- time of GLOB grows with a power of the number of stars.
CREATE MACRO fits_pattern(name, pattern) AS regexp_full_match(
    name, '(?s)' || replace(replace(regexp_escape(pattern), '\*', '.*'), '\?', '.')
);

-- Whether a call of the OS runtime sleeps, or waits for an event outside of the process.
CREATE MACRO is_sleep_or_poll(name) AS regexp_matches(
    name, '^((clock_)?nanosleep|u?sleep|p?poll|p?select|epoll_p?wait)$'
);

-- The types of parameters in a mangled name: a letter each, P for a pointer to it, K for const, S_ for the pointer that
-- was named before. NULL if there are others.
CREATE MACRO _parameter_types(codes) AS CASE
    WHEN codes = 'v' THEN ''
    WHEN regexp_full_match(codes, '((PK?)?[bcahstijlmxyfd]|S0?_)+')
        AND NOT (contains(codes, 'S') AND (
            len(list_distinct(regexp_extract_all(codes, 'PK?[a-z]'))) <> 1
            OR contains(codes, 'PK') <> contains(codes, 'S0_') OR regexp_matches(codes, 'PK.*S_')
        ))
        THEN array_to_string(
            list_transform(
                regexp_extract_all(
                    regexp_replace(codes, 'S0?_', regexp_extract(codes, 'PK?[a-z]'), 'g'), '(PK?)?[a-z]'
                ),
                lambda code: CASE WHEN contains(code, 'K') THEN 'const ' ELSE '' END || map {
                    'b': 'bool', 'c': 'char', 'a': 'signed char', 'h': 'unsigned char', 's': 'short',
                    't': 'unsigned short', 'i': 'int', 'j': 'unsigned int', 'l': 'long', 'm': 'unsigned long',
                    'x': 'long long', 'y': 'unsigned long long', 'f': 'float', 'd': 'double'
                }[code[-1:]] || CASE WHEN contains(code, 'P') THEN ' *' ELSE '' END
            ), ', '
        )
END;

-- The name of a plain function and its parameters, from the rest of a mangled name; `size` is the length of the name.
CREATE MACRO _function_with_types(rest, size) AS rest[:size] || '(' || _parameter_types(rest[size + 1:]) || ')';

-- Words in messages of nsys that do not concern kernels, copies or CUDA calls.
CREATE MACRO _other_data() AS
    '(?i)paranoid|backtrace|CPU (IP|kernel|sampl)|context switch|perf event|sampling|thread state|unified memory'
    '|GPU metric|GPU counter|ERR_NVGPUCTRPERM|ftrace|syscall|OS runtime|OpenGL|Vulkan|DX1[12]|Direct3D|WDDM|ETW'
    '|OpenACC|OpenMP|cuDNN|cuBLAS|NVTX|MPI|UCX|\bNIC\b|InfiniBand|NVENC|NVDEC|video';

-- Whether a program has this overhead without nsys, too. The driver loads or compiles a kernel at its first launch, or
-- has no room for more launches; or a library is loaded. CUPTI has kinds for these (CUpti_ActivityOverheadKind 1, 4, 5,
-- 6), which nsys up to 2026 calls Unknown. Unknown overhead is not attributed to the profiler.
CREATE MACRO is_program_overhead(overhead) AS regexp_extract(
    overhead, '(?i)^(unknown$|dlm?open|dlclose)|module load|function load|compil|command buffer'
) <> '';
