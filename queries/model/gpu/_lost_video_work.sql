/*
description = "How much work of the engines for video and images the profiler lost: one row."
[columns]
ranges = "Stretches of work that were not recorded; NULL if there are none"
*/
SELECT nullif(sum(rangeCount), 0)::BIGINT AS ranges
FROM raw.GPU_VIDEO_ENGINE_MISSING;
