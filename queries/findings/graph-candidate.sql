/*
title = "The step could be launched as a CUDA graph"
family = "launch"
overlaps = true
meaning = """
One graph launch would replace one launch call per kernel."""
action = """
Capture the step: torch.compile mode reduce-overhead, torch.cuda.graph, cudaStreamBeginCapture."""
caveat = """
Shapes or control flow change from step to step, or the host has to read values inside the step."""
report = "graph-candidates"
*/
SELECT
    saving_high_ns AS recoverable_ns,
    saving_high_pct AS wall_pct,
    NULL AS place,
    'a CUDA graph saves ' || time_text(saving_low_ns) || ' to ' || time_text(saving_high_ns)
        || '; ' || profiler_share_text() || coalesce('; blockers: ' || obstacles, '') AS evidence
FROM graph_candidates_report
-- If CPU work takes most of the time, fewer launches would not help.
WHERE verdict <> 'no' AND EXISTS (FROM classify_report WHERE part = 'launch' AND see = 'graph-candidates')
