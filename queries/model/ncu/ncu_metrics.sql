/*
description = "One row per launch and metric that ncu collected: all of its raw page, or what its details page shows."
[columns]
launch = "The launch, in `ncu_launches`"
kernel = "The kernel's name as ncu prints it"
metric = "ncu's name of the metric"
value = "The value in the base unit; NULL where ncu could not measure it, or it is not a number"
unit = "The base unit: ns, byte, hz, byte/s, % …; NULL where there is none"
text = "A value that is not a number, such as the name of the GPU"
*/
SELECT
    m.launch, l.kernel, m.metric, m.value, m.unit, m.text, l.grid_x, l.grid_y, l.grid_z, l.block_x, l.block_y, l.block_z
FROM raw.ncu_metrics AS m
JOIN raw.ncu_launches AS l USING (launch);
