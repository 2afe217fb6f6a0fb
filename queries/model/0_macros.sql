-- nsys packs its ids: 8 bits of host, 8 of VM, 24 of process, 24 of thread.
CREATE MACRO pid_of(global_id) AS (global_id >> 24) & 16777215;

CREATE MACRO tid_of(global_id) AS global_id & 16777215;

-- cudaMemcpyAsync_ptsz_v10000 is cudaMemcpyAsync to everybody but the linker.
CREATE MACRO api_name(recorded) AS regexp_replace(recorded, '(_ptsz|_ptds)?(_v[0-9]+)?(_ptsz|_ptds)?$', '');

-- What a CUDA API call is for. A call that puts kernels on the GPU is a 'launch', a graph launch runs hundreds of them;
-- 'sync' makes the host wait.
CREATE MACRO api_group(name) AS CASE
    WHEN regexp_matches(name, '^cu(da)?Launch(Cooperative)?(Kernel|Grid|$)') THEN 'launch'
    WHEN regexp_matches(name, '^cu(da)?GraphLaunch') THEN 'graph launch'
    WHEN regexp_matches(name, '^cu(da)?(Device|Stream|Event|Ctx|Thread)Synchronize') THEN 'sync'
    WHEN regexp_matches(name, '^cu(da)?Mem(cpy|PrefetchAsync|PrefetchBatchAsync)') THEN 'copy'
    WHEN regexp_matches(name, '^cu(da)?Memset') THEN 'memset'
    WHEN regexp_matches(name, '^(cudaMalloc|cudaHostAlloc|cudaHostRegister|cuMemAlloc|cuMemHost(Alloc|Register)|cuMemCreate|cu(Mipmapped)?Array(3D)?Create)') THEN 'alloc'
    WHEN regexp_matches(name, '^(cudaFree|cudaHostUnregister|cuMemFree|cuMemHostUnregister|cuMemRelease|cu(Mipmapped)?ArrayDestroy)') THEN 'free'
    WHEN regexp_matches(name, '^cu(da)?Graph|^cu(da)?Stream(Begin|End)Capture') THEN 'graph'
    WHEN regexp_matches(name, '^cu(da)?Event|^cu(da)?StreamWaitEvent') THEN 'event'
    WHEN regexp_matches(name, '^cu(da)?(Module|Library|Kernel|Func)') THEN 'module'
    ELSE 'other'
END;

-- nsys says 'Host-to-Device'; everybody else says H2D.
CREATE MACRO copy_kind_word(label) AS
    replace(replace(replace(replace(replace(replace(label, 'Unified ', 'UM '), 'Host', 'H'), 'Device', 'D'), 'Array', 'A'), 'Peer', 'P'), '-to-', '2');

-- One number for a kernel and the shape of its launch.
CREATE MACRO shape_id_of(
    name_id, grid_x, grid_y, grid_z, block_x, block_y, block_z, cluster_x, cluster_y, cluster_z, registers, static_shared,
    dynamic_shared, local
) AS hash(
    name_id, grid_x, grid_y, grid_z, block_x, block_y, block_z, cluster_x, cluster_y, cluster_z, registers, static_shared,
    dynamic_shared, local
);
