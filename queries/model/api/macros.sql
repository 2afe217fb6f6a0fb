-- The name of an API function without the suffixes that only the linker needs: cudaMemcpyAsync_ptsz_v10000 is
-- cudaMemcpyAsync.
CREATE MACRO api_name(recorded) AS regexp_replace(recorded, '(_ptsz|_ptds|_v[0-9]+)+$', '');

-- What a CUDA API call is for. 'launch' puts a kernel on the GPU, 'graph launch' may run hundreds of them, 'sync' makes
-- the host wait. DuckDB compiles the pattern of regexp_matches three times: for a few names that is most of the time.
CREATE MACRO api_group(name) AS CASE
    WHEN regexp_extract(name, '^cu(da)?Launch(Cooperative)?(Kernel|Grid|$)') <> '' THEN 'launch'
    WHEN regexp_extract(name, '^cu(da)?GraphLaunch') <> '' THEN 'graph launch'
    WHEN regexp_extract(name, '^cu(da)?(Device|Stream|Event|(Execution)?Ctx|Thread)Synchronize') <> '' THEN 'sync'
    WHEN regexp_extract(name, '^cu(da)?Mem(cpy|PrefetchAsync|PrefetchBatchAsync)') <> '' THEN 'copy'
    WHEN regexp_extract(name, '^cu(da)?Memset') <> '' THEN 'memset'
    WHEN regexp_extract(
        name,
        '^(cudaMalloc|cudaHostAlloc|cudaHostRegister|cuMemAlloc|cuMemHost(Alloc|Register)'
        '|cuMem(Create|Map|SetAccess|AddressReserve)$'
        '|cu(Mipmapped)?Array(3D)?Create)'
    ) <> '' THEN 'alloc'
    WHEN regexp_extract(
        name, '^(cudaFree|cudaHostUnregister|cuMemFree|cuMemHostUnregister|cuMem(Release|Unmap|AddressFree)$'
        '|cu(da)?MemPoolTrimTo|cu(Mipmapped)?ArrayDestroy)'
    ) <> '' THEN 'free'
    WHEN regexp_extract(name, '^cu(da)?Graph|^cu(da)?Stream(Begin|End)Capture') <> '' THEN 'graph'
    WHEN regexp_extract(name, '^cu(da)?Event|^cu(da)?StreamWaitEvent') <> '' THEN 'event'
    WHEN regexp_extract(name, '^cu(da)?(Module|Library|Kernel|Func)') <> '' THEN 'module'
    ELSE 'other'
END;

-- Whether a call lets the GPU run a function on the host, after the operations before it in the stream.
CREATE MACRO runs_on_host(name) AS regexp_extract(name, '^cu(da)?(LaunchHostFunc|StreamAddCallback)') <> '';
