CREATE VIEW _whole_graphs AS
SELECT 'CUDA graphs ran as a whole ' || count(*) || ' times: their kernels are not in this table; capture with --cuda-graph-trace=node to see them' AS sentence
FROM graph_launches
HAVING count(*) > 0;

COMMENT ON VIEW _whole_graphs IS 'What a report about kernels says where CUDA graphs hide some: one row; none where they do not.';
COMMENT ON COLUMN _whole_graphs.sentence IS 'That they do, and how to see them';
