/*
description = "How long the engines for video and images work while the GPUs are idle. One row if they work."
stored = true
needs = "video_work"
[columns]
idle_ns = "Idle time in which one of them works"
*/
-- A fact of its own: the note about these engines, of most reports, would plan it for traces without video as well.
WITH ranges AS (
    SELECT 1 AS group_id, thread_of(0, process_id) AS thread, start_ns, end_ns AS close_ns, end_ns FROM video_work
)
SELECT open_ns - busy_ns AS idle_ns FROM _busy_during('ranges');
