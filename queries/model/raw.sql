-- The expected schema: exactly the nsys tables and columns that the model reads, with the types that it reads them as.
-- The loader makes a relation of each of these shapes in the schema `raw`, for every version of nsys: a missing column
-- becomes a typed NULL, a missing table an empty one. The scope narrows these relations too, so the views above need
-- not know about it. To read another column, add it here.
-- Source of names and meanings: the column comments of real exports, nsys 2020.3 to 2026.2.

CREATE TABLE StringIds (id BIGINT, value VARCHAR);

CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (
    start BIGINT, "end" BIGINT, deviceId BIGINT, contextId BIGINT, greenContextId BIGINT, streamId BIGINT,
    correlationId BIGINT, globalPid BIGINT, demangledName BIGINT, shortName BIGINT, mangledName BIGINT,
    launchType BIGINT, registersPerThread BIGINT,
    gridX BIGINT, gridY BIGINT, gridZ BIGINT, blockX BIGINT, blockY BIGINT, blockZ BIGINT,
    staticSharedMemory BIGINT, dynamicSharedMemory BIGINT, sharedMemoryExecuted BIGINT,
    localMemoryPerThread BIGINT, localMemoryTotal BIGINT, gridId BIGINT, graphNodeId BIGINT, graphId BIGINT,
    clusterX BIGINT, clusterY BIGINT, clusterZ BIGINT
);

CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (
    start BIGINT, "end" BIGINT, eventClass BIGINT, globalTid BIGINT, correlationId BIGINT, nameId BIGINT,
    returnValue BIGINT, callchainId BIGINT
);

CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (
    start BIGINT, "end" BIGINT, deviceId BIGINT, contextId BIGINT, streamId BIGINT, correlationId BIGINT,
    globalPid BIGINT, bytes BIGINT, copyKind BIGINT, srcKind BIGINT, dstKind BIGINT,
    srcDeviceId BIGINT, dstDeviceId BIGINT, migrationCause BIGINT, graphNodeId BIGINT, copyCount BIGINT
);

CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (
    start BIGINT, "end" BIGINT, deviceId BIGINT, contextId BIGINT, streamId BIGINT, correlationId BIGINT,
    globalPid BIGINT, value BIGINT, bytes BIGINT, graphNodeId BIGINT, memKind BIGINT
);

CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (
    start BIGINT, "end" BIGINT, deviceId BIGINT, contextId BIGINT, streamId BIGINT, correlationId BIGINT,
    globalPid BIGINT, syncType BIGINT, eventId BIGINT
);

CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (
    deviceId BIGINT, contextId BIGINT, streamId BIGINT, correlationId BIGINT, globalPid BIGINT, eventId BIGINT
);

CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (
    start BIGINT, "end" BIGINT, deviceId BIGINT, contextId BIGINT, streamId BIGINT, correlationId BIGINT,
    globalPid BIGINT, graphId BIGINT, graphExecId BIGINT
);

CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (
    start BIGINT, globalPid BIGINT, deviceId BIGINT, contextId BIGINT, address BIGINT, bytes BIGINT, memKind BIGINT,
    memoryOperationType BIGINT, name VARCHAR, correlationId BIGINT, streamId BIGINT,
    localMemoryPoolAddress BIGINT, localMemoryPoolSize BIGINT, localMemoryPoolUtilizedSize BIGINT
);

CREATE TABLE CUDA_UM_CPU_PAGE_FAULT_EVENTS (start BIGINT, globalPid BIGINT, address BIGINT);

CREATE TABLE CUDA_UM_GPU_PAGE_FAULT_EVENTS (
    start BIGINT, "end" BIGINT, globalPid BIGINT, deviceId BIGINT, address BIGINT, numberOfPageFaults BIGINT
);

CREATE TABLE NVTX_EVENTS (
    start BIGINT, "end" BIGINT, eventType BIGINT, text VARCHAR, globalTid BIGINT,
    endGlobalTid BIGINT, textId BIGINT, domainId BIGINT, binaryData BLOB
);

CREATE TABLE NVTX_PAYLOAD_SCHEMAS (domainId BIGINT, schemaId BIGINT, payloadSize BIGINT);

CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (
    domainId BIGINT, schemaId BIGINT, idx BIGINT, name VARCHAR, "offset" BIGINT
);

CREATE TABLE GPU_METRICS (timestamp BIGINT, typeId BIGINT, metricId BIGINT, value BIGINT);

CREATE TABLE TARGET_INFO_GPU_METRICS (typeId BIGINT, metricId BIGINT, metricName VARCHAR);

-- Samples of network cards.
CREATE TABLE NET_NIC_METRIC (
    start BIGINT, "end" BIGINT, globalId BIGINT, metricsListId BIGINT, metricsIdx BIGINT, value BIGINT
);

CREATE TABLE TARGET_INFO_NETWORK_METRICS (metricsListId BIGINT, metricsIdx BIGINT, name VARCHAR, unit VARCHAR);

CREATE TABLE NIC_ID_MAP (nicId BIGINT, globalId BIGINT);

CREATE TABLE TARGET_INFO_NIC_INFO (nicId BIGINT, name VARCHAR);

-- When contexts took turns on a GPU. nsys 2022 called the table FECS_EVENTS.
CREATE TABLE GPU_CONTEXT_SWITCH_EVENTS (
    tag BIGINT, vmId BIGINT, seqNo BIGINT, contextId BIGINT, timestamp BIGINT, globalPid BIGINT, gpuId BIGINT
);

CREATE TABLE FECS_EVENTS (
    tag BIGINT, vmId BIGINT, seqNo BIGINT, contextId BIGINT, timestamp BIGINT, globalPid BIGINT, gpuId BIGINT
);

-- Accesses to files.
CREATE TABLE OSRT_FILE_ACCESS_EVENTS (
    fileAccessId BIGINT, startedAt BIGINT, endedAt BIGINT, eventType BIGINT, bytesProcessed BIGINT
);

CREATE TABLE OSRT_FILE_ACCESS_DESCRIPTORS (fileAccessId BIGINT, filePath VARCHAR);

CREATE TABLE ENUM_OSRT_FILE_ACCESS_EVENT_TYPE (id BIGINT, label VARCHAR);

CREATE TABLE OSRT_API (
    start BIGINT, "end" BIGINT, globalTid BIGINT, nameId BIGINT, returnValue BIGINT, callchainId BIGINT
);

-- What the OpenACC runtime does for a directive.
CREATE TABLE CUPTI_ACTIVITY_KIND_OPENACC_DATA (
    start BIGINT, "end" BIGINT, nameId BIGINT, globalTid BIGINT, lineNo BIGINT, srcFile BIGINT, funcName BIGINT,
    bytes BIGINT, varName BIGINT
);

CREATE TABLE CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH (
    start BIGINT, "end" BIGINT, nameId BIGINT, globalTid BIGINT, lineNo BIGINT, srcFile BIGINT, funcName BIGINT,
    numGangs BIGINT, numWorkers BIGINT, vectorLength BIGINT, kernelName BIGINT
);

CREATE TABLE CUPTI_ACTIVITY_KIND_OPENACC_OTHER (
    start BIGINT, "end" BIGINT, nameId BIGINT, globalTid BIGINT, lineNo BIGINT, srcFile BIGINT, funcName BIGINT
);

-- What the OpenMP runtime does on the host. Each construct has a table; those of events without a duration are not
-- read.
CREATE TABLE OPENMP_EVENT_KIND_THREAD (start BIGINT, "end" BIGINT, nameId BIGINT, globalTid BIGINT);

CREATE TABLE OPENMP_EVENT_KIND_PARALLEL (start BIGINT, "end" BIGINT, nameId BIGINT, globalTid BIGINT);

CREATE TABLE OPENMP_EVENT_KIND_SYNC_REGION (start BIGINT, "end" BIGINT, nameId BIGINT, globalTid BIGINT);

CREATE TABLE OPENMP_EVENT_KIND_SYNC_REGION_WAIT (start BIGINT, "end" BIGINT, nameId BIGINT, globalTid BIGINT);

CREATE TABLE OPENMP_EVENT_KIND_TASK (start BIGINT, "end" BIGINT, nameId BIGINT, globalTid BIGINT);

CREATE TABLE OPENMP_EVENT_KIND_MASTER (start BIGINT, "end" BIGINT, nameId BIGINT, globalTid BIGINT);

CREATE TABLE OPENMP_EVENT_KIND_REDUCTION (start BIGINT, "end" BIGINT, nameId BIGINT, globalTid BIGINT);

CREATE TABLE OPENMP_EVENT_KIND_MUTEX_WAIT (start BIGINT, "end" BIGINT, nameId BIGINT, globalTid BIGINT);

CREATE TABLE OPENMP_EVENT_KIND_CRITICAL_SECTION (start BIGINT, "end" BIGINT, nameId BIGINT, globalTid BIGINT);

CREATE TABLE OPENMP_EVENT_KIND_WORKSHARE (start BIGINT, "end" BIGINT, nameId BIGINT, globalTid BIGINT);

-- Calls of libraries.
CREATE TABLE CUDNN_EVENTS (start BIGINT, "end" BIGINT, nameId BIGINT, globalTid BIGINT);

CREATE TABLE CUBLAS_EVENTS (start BIGINT, "end" BIGINT, nameId BIGINT, globalTid BIGINT);

CREATE TABLE NVVIDEO_ENCODER_API (start BIGINT, "end" BIGINT, nameId BIGINT, globalTid BIGINT);

CREATE TABLE NVVIDEO_DECODER_API (start BIGINT, "end" BIGINT, nameId BIGINT, globalTid BIGINT);

CREATE TABLE NVVIDEO_JPEG_API (start BIGINT, "end" BIGINT, nameId BIGINT, globalTid BIGINT);

-- What the engines for video and images of a GPU did, and how much of it was lost.
CREATE TABLE GPU_VIDEO_ENGINE_WORKLOAD (start BIGINT, "end" BIGINT, globalPid BIGINT, engineType BIGINT);

CREATE TABLE GPU_VIDEO_ENGINE_MISSING (rangeCount BIGINT);

-- Where nodes of CUDA graphs were captured, added or cloned.
CREATE TABLE CUDA_GRAPH_NODE_EVENTS (
    start BIGINT, globalTid BIGINT, graphNodeId BIGINT, originalGraphNodeId BIGINT
);

CREATE TABLE CUDA_GRAPH_EVENTS (start BIGINT, globalTid BIGINT, graphNodeId BIGINT, originalGraphNodeId BIGINT);

-- Calls of MPI, and which rank a process is. A handle of a communicator means something else on each rank, so rows of
-- MPI_COMMUNICATORS say which communicator it is: groupRoot is a rank of MPI_COMM_WORLD, groupRootUid a number there.
CREATE TABLE MPI_P2P_EVENTS (
    start BIGINT, "end" BIGINT, globalTid BIGINT, textId BIGINT, commHandle BIGINT, tag BIGINT, remoteRank BIGINT,
    size BIGINT, requestHandle BIGINT
);

CREATE TABLE MPI_COLLECTIVES_EVENTS (
    start BIGINT, "end" BIGINT, globalTid BIGINT, textId BIGINT, commHandle BIGINT, rootRank BIGINT, size BIGINT,
    recvSize BIGINT, requestHandle BIGINT
);

CREATE TABLE MPI_START_WAIT_EVENTS (
    start BIGINT, "end" BIGINT, globalTid BIGINT, textId BIGINT, requestHandle BIGINT
);

CREATE TABLE MPI_OTHER_EVENTS (start BIGINT, "end" BIGINT, globalTid BIGINT, textId BIGINT);

CREATE TABLE MPI_RANKS (globalTid BIGINT, rank BIGINT);

CREATE TABLE MPI_COMMUNICATORS (
    rank BIGINT, timestamp BIGINT, commHandle BIGINT, parentHandle BIGINT, localRank BIGINT, size BIGINT,
    groupRoot BIGINT, groupRootUid BIGINT
);

-- Call chains, frame by frame: of CUDA calls, of operating system calls, and of CPU samples. Two of these tables have
-- the same columns in an export, so no query may read both: see "Common subplans" in docs/decisions.md.
CREATE TABLE CUDA_CALLCHAINS (id BIGINT, symbol BIGINT, module BIGINT, unresolved BIGINT, stackDepth BIGINT);

CREATE TABLE OSRT_CALLCHAINS (id BIGINT, symbol BIGINT, module BIGINT, unresolved BIGINT, stackDepth BIGINT);

CREATE TABLE SAMPLING_CALLCHAINS (id BIGINT, symbol BIGINT, module BIGINT, unresolved BIGINT, stackDepth BIGINT);

-- A CPU sample of a thread. Its id is that of its frames in SAMPLING_CALLCHAINS.
CREATE TABLE COMPOSITE_EVENTS (id BIGINT, start BIGINT, globalTid BIGINT);

-- When a thread got a CPU, and when it lost it.
CREATE TABLE SCHED_EVENTS (start BIGINT, isSchedIn BIGINT, globalTid BIGINT);

CREATE TABLE PROFILER_OVERHEAD (start BIGINT, "end" BIGINT, globalTid BIGINT, nameId BIGINT);

CREATE TABLE DIAGNOSTIC_EVENT (timestamp BIGINT, source BIGINT, severity BIGINT, text VARCHAR, globalPid BIGINT);

CREATE TABLE PROCESSES (globalPid BIGINT, pid BIGINT, name VARCHAR);

CREATE TABLE ThreadNames (nameId BIGINT, globalTid BIGINT);

CREATE TABLE TARGET_INFO_GPU (
    id BIGINT, name VARCHAR, busLocation VARCHAR, totalMemory BIGINT, memoryBandwidth BIGINT, clockRate BIGINT,
    smCount BIGINT, l2CacheSize BIGINT, uuid VARCHAR, chipName VARCHAR, threadsPerWarp BIGINT,
    maxWarpsPerSm BIGINT, maxBlocksPerSm BIGINT, maxRegistersPerSm BIGINT, maxRegistersPerBlock BIGINT,
    maxShmemPerSm BIGINT, maxShmemPerBlock BIGINT, maxShmemPerBlockOptin BIGINT, maxThreadsPerBlock BIGINT,
    computeMajor BIGINT, computeMinor BIGINT
);

-- The form of TARGET_INFO_GPU until 2020.
CREATE TABLE TARGET_INFO_CUDA_GPU (
    deviceId BIGINT, name VARCHAR, pciBusId VARCHAR, globalMemorySize BIGINT, globalMemoryBandwidth BIGINT,
    coreClockRate BIGINT, numMultiprocessors BIGINT, l2CacheSize BIGINT, numThreadsPerWarp BIGINT,
    maxWarpsPerMultiprocessor BIGINT, maxBlocksPerMultiprocessor BIGINT, maxRegistersPerMultiprocessor BIGINT,
    maxRegistersPerBlock BIGINT, maxSharedMemoryPerMultiprocessor BIGINT, maxSharedMemoryPerBlock BIGINT,
    maxThreadsPerBlock BIGINT, computeCapabilityMajor BIGINT, computeCapabilityMinor BIGINT
);

CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId BIGINT, cudaId BIGINT, pid BIGINT, numMultiprocessors BIGINT);

CREATE TABLE TARGET_INFO_CUDA_CONTEXT_INFO (
    processId BIGINT, contextId BIGINT, deviceId BIGINT, numMultiprocessors BIGINT
);

CREATE TABLE TARGET_INFO_CUDA_STREAM (
    streamId BIGINT, processId BIGINT, contextId BIGINT, priority BIGINT, flag BIGINT
);

-- Names that the program gives to streams (nvtxNameCudaStreamA).
CREATE TABLE TARGET_INFO_NVTX_CUDA_STREAM (name VARCHAR, processId BIGINT, contextId BIGINT, streamId BIGINT);

CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs BIGINT, utcTime VARCHAR);

CREATE TABLE TARGET_INFO_SYSTEM_ENV (name VARCHAR, value VARCHAR);

CREATE TABLE ANALYSIS_DETAILS (duration BIGINT, startTime BIGINT, stopTime BIGINT);

CREATE TABLE META_DATA_CAPTURE (name VARCHAR, value VARCHAR);

CREATE TABLE META_DATA_EXPORT (name VARCHAR, value VARCHAR);

CREATE TABLE EXPORT_META_DATA (name VARCHAR, value VARCHAR);

CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id BIGINT, label VARCHAR);

CREATE TABLE ENUM_CUDA_MEM_KIND (id BIGINT, label VARCHAR);

CREATE TABLE ENUM_VIDEO_ENGINE_TYPE (id BIGINT, name VARCHAR);

CREATE TABLE ENUM_CUDA_UNIF_MEM_MIGRATION (id BIGINT, label VARCHAR);

CREATE TABLE ENUM_CUDA_KERNEL_LAUNCH_TYPE (id BIGINT, label VARCHAR);

-- The same enum, misspelt as in some exports.
CREATE TABLE ENUM_CUDA_KRENEL_LAUNCH_TYPE (id BIGINT, label VARCHAR);

CREATE TABLE ENUM_CUDA_DEV_MEM_EVENT_OPER (id BIGINT, label VARCHAR);

CREATE TABLE ENUM_CUPTI_STREAM_TYPE (id BIGINT, label VARCHAR);

CREATE TABLE ENUM_DIAGNOSTIC_SEVERITY_LEVEL (id BIGINT, label VARCHAR);

CREATE TABLE ENUM_DIAGNOSTIC_SOURCE_TYPE (id BIGINT, label VARCHAR);

-- Tables of `nsys-insight ncu import`, if its file is given along with the trace. Not from nsys:
-- nsys_insight/ingest/ncu/store.py writes them.

CREATE TABLE ncu_launches (
    launch BIGINT, report VARCHAR, ncu_id BIGINT, process_id BIGINT, process_name VARCHAR, kernel VARCHAR,
    context_id BIGINT, stream_id BIGINT, device_id BIGINT, compute_capability VARCHAR,
    grid_x BIGINT, grid_y BIGINT, grid_z BIGINT, block_x BIGINT, block_y BIGINT, block_z BIGINT, implementation VARCHAR
);

CREATE TABLE ncu_metrics (launch BIGINT, metric VARCHAR, value DOUBLE, unit VARCHAR, text VARCHAR);

CREATE TABLE ncu_rules (
    launch BIGINT, section VARCHAR, rule VARCHAR, type VARCHAR, description VARCHAR, speedup_type VARCHAR,
    speedup_pct DOUBLE
);
