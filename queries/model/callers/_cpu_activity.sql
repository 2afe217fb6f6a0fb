/* parameters = ["function", "module", "kind"] */
-- What the CPU does in a function, by its name; NULL if the name says nothing in particular. The names are those of
-- glibc, libstdc++, CPython, NumPy and fmt. The first match counts.
CASE
    WHEN function IS NULL OR kind = 'profiler' THEN NULL
    WHEN regexp_matches(
        function,
        '(?i)dtoa$|double_to_string|dragon4|^grisu|\bryu\b|_printf_fp|printf|_itoa\b|^_?PyUnicode_(Format'
        '|FromFormat|_?FormatAdvanced)|^_Py(Float|Long|Complex|Unicode)_Format|^PyObject_Format|float_repr'
        '|long_to_decimal|^_PyLong_Format|_IO_\w*xsputn|\bnum_put\b|std::to_chars|std::to_string|\bfmt::'
        '|basic_ostream|^std::ostream'
    )
        THEN 'formatting text and numbers'
    WHEN regexp_matches(
        function,
        '(?i)strto(d|f|l|ul|ll|ull|ld)\b|^PyFloat_FromString|^PyLong_FromString|\bsscanf|std::from_chars'
        '|\bnum_get\b|^atof$|^atoi$|fast_float|simdjson|rapidjson|nlohmann'
    )
        THEN 'parsing text and numbers'
    WHEN regexp_matches(
        function,
        '(?i)^(_int_|__libc_|__GI_|je_|tc_|mi_)?(malloc|calloc|realloc|free|cfree|memalign|posix_memalign)\w*$'
        '|^malloc_consolidate|^unlink_chunk|^operator (new|delete)|^_?PyObject_(Malloc|Free|Realloc|Calloc)|^PyMem_'
        '|^(__)?(mmap|munmap|brk|sbrk|madvise)(64)?$'
    )
        THEN 'allocating host memory'
    WHEN regexp_matches(function, '(?i)page_fault|handle_mm_fault|clear_page|do_anonymous_page|clear_huge_page')
        THEN 'page faults'
    WHEN regexp_matches(function, '(?i)^_*(GI_)?mem(cpy|move|set|cmp)\w*$|^(_intel_fast_)?memcpy')
        THEN 'copying host memory'
    WHEN regexp_matches(
        function,
        '(?i)^(__)?(GI_)?(lib_)?(pthread_(mutex|rwlock|spin)_\w*lock\w*|lll_lock\w*|lll_mutex\w*)$|^take_gil$'
        '|^PyEval_(AcquireThread|RestoreThread|AcquireLock)$|^std::mutex::lock|queued_spin_lock'
    )
        THEN 'locking'
    WHEN regexp_matches(function, '(?i)^(__)?(GI_)?(libc_)?(clock_)?nanosleep(64)?$|^usleep$|^(__)?sleep$')
        THEN 'sleeping'
    WHEN regexp_matches(
        function,
        '(?i)^(__)?(GI_)?(libc_)?(read|pread|write|pwrite|open|openat|close|fsync|lseek|readv|writev|fread|fwrite'
        '|fopen|fclose|fflush|sendfile)(64)?$|^_io_\w+_(read|write)|^std::basic_(i|o)?f(ile)?(stream|buf)'
    )
        THEN 'reading and writing files'
    WHEN regexp_matches(
        function,
        '(?i)^(__)?(GI_)?(libc_)?(poll|ppoll|select|pselect|epoll_wait|sem_wait|sem_timedwait'
        '|pthread_cond_(timed)?wait|sched_yield|recv|recvfrom|recvmsg|accept)$'
    )
        THEN 'waiting'
    WHEN regexp_matches(
        function, '(?i)^(_?PyGC_|gc_collect|_PyObject_GC_|deduce_unreachable|subtract_refs|visit_reachable)'
    )
        THEN 'collecting garbage'
END;
