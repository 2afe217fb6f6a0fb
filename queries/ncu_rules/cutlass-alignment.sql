/*
title = "The alignment of operands is too small for wide loads"
severity = "warning"
evidence = ["load_sectors_per_request_ratio", "name_alignment"]

[actions]
cutlass = "Use alignment 8 for 16-bit operands (128-bit loads): pad the leading dimensions to a multiple of 8."

[params]
above = [4.0, "Sectors per request above which alignment matters: common practice"]
alignment = [8, "Elements of 16 bits in a 128-bit load"]
*/
SELECT launch, load_sectors_per_request_ratio, name_alignment
FROM ncu_kernels
WHERE load_sectors_per_request_ratio > $above AND name_alignment < $alignment
ORDER BY launch
