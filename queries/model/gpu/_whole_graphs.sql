/*
description = "What a report about kernels says if CUDA graphs hide some: one row; no row if they do not."
[columns]
sentence = "How much CUDA graphs hide, and how to capture their nodes, as a sentence"
of_idle = "What a report about idle time says instead"
of_copies = "What a report about copies says instead"
*/
SELECT
    'CUDA graphs ran as a whole ' || count(*)
        || ' times: their kernels are not in this table; capture with --cuda-graph-trace=node to see them' AS sentence,
    'CUDA graphs ran as a whole ' || count(*)
        || ' times: idle time inside them counts as busy; capture with --cuda-graph-trace=node to see it' AS of_idle,
    'CUDA graphs ran as a whole ' || count(*)
        || ' times: copies and memsets inside them are not in this table; capture with --cuda-graph-trace=node to '
            'see them' AS of_copies
FROM graph_launches
HAVING count(*) > 0;
