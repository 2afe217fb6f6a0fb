/*
description = """One row per stretch of work of a GPU's engine for video or images (NVDEC, NVENC, NVJPEG, OFA), which
    runs next to kernels and copies and is no part of busy time; only with --gpu-video-device."""
[columns]
engine = "The engine, by the file's own table of engines; engine 7 where that does not name it"
start_ns = "When the work began"
end_ns = "When the work ended"
process_id = "Operating system's process id; NULL where unknown"
*/
SELECT
    coalesce(n.name, 'engine ' || w.engineType, 'unknown engine') AS engine, w.start AS start_ns, w."end" AS end_ns,
    duration(w.start, w."end") AS duration_ns, pid_of(w.globalPid) AS process_id
FROM raw.GPU_VIDEO_ENGINE_WORKLOAD AS w
LEFT JOIN raw.ENUM_VIDEO_ENGINE_TYPE AS n ON n.id = w.engineType;
