/*
parameters = [
    "gpu_pct", "launch_pct", "sync_pct", "copy_pct", "allocation_pct", "communication_pct", "dependency_pct",
    "edge_pct", "late_bound", "least_pct", "busy_pct", "main_pct"
]
*/
-- What bounds a step or a trace, from the shares of its wall time: one word, or mixed and several words, that of the
-- largest share first. A GPU that is busy for half of the time is named along with the causes of its idle time.
-- Where these are few, it is busy, or waits although its next operation was launched in time.
-- `late_bound` is the word for late launches: launch-bound or host-bound.
(
    SELECT CASE
        WHEN gpu_pct >= busy_pct THEN ['GPU-bound']
        WHEN gpu_pct + dependency_pct >= 50 AND coalesce(total, 0) < 100 - busy_pct THEN CASE
            WHEN 100 * gpu_pct >= main_pct * (gpu_pct + dependency_pct) THEN ['GPU-bound']
            WHEN 100 * dependency_pct >= main_pct * (gpu_pct + dependency_pct) THEN ['dependency-bound']
            ELSE ['mixed'] || _words_by_share([
                {'pct': gpu_pct, 'bound': 'GPU-bound'}, {'pct': dependency_pct, 'bound': 'dependency-bound'}
            ])
        END
        WHEN len(causes) = 0 THEN ['unknown']
        WHEN communication_pct = largest_pct AND 100 * largest_pct >= main_pct * total THEN ['communication-bound']
        WHEN gpu_pct >= 50 THEN ['mixed'] || _words_by_share(causes || [{'pct': gpu_pct, 'bound': 'GPU-bound'}])
        WHEN 100 * largest_pct >= main_pct * total THEN [list_filter(causes, lambda n: n.pct = largest_pct)[1].bound]
        ELSE ['mixed'] || _words_by_share(causes)
    END
    FROM (
        SELECT
            causes, list_max(list_transform(causes, lambda n: n.pct)) AS largest_pct,
            list_sum(list_transform(causes, lambda n: n.pct)) AS total
        FROM (
            SELECT list_filter([
                {'pct': allocation_pct, 'bound': 'allocation-bound'}, {'pct': sync_pct, 'bound': 'sync-bound'},
                {'pct': copy_pct, 'bound': 'copy-bound'}, {'pct': communication_pct, 'bound': 'communication-bound'},
                {'pct': launch_pct, 'bound': late_bound}, {'pct': edge_pct, 'bound': 'start-up and end'}
            ], lambda n: n.pct > 0 AND n.pct >= least_pct) AS causes
        )
    )
);
