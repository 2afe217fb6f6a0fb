/*
title = "Loads are 32 bits wide"
evidence = [
    "load_sectors_per_request_ratio", "load_bytes_per_thread_ratio", "blocks_count", "sm_count", "bound", "request_kind"
]

[actions]
native = "Load 128 bits at a time: float4, or a vector type of the element, from 16-byte aligned addresses."
cute = "Copy 128 bits at a time: num_bits_per_copy = 128."

[params]
sectors = [4.0, "Sectors per request that 32 scalar loads of 4 bytes need when they are coalesced: common practice"]
bytes = [4.0, "Bytes that a thread loads at once and that count as scalar"]
*/
SELECT launch, load_sectors_per_request_ratio, load_bytes_per_thread_ratio, blocks_count, sm_count, bound, request_kind
FROM ncu_kernels
WHERE load_sectors_per_request_ratio >= $sectors AND load_bytes_per_thread_ratio <= $bytes
    AND blocks_count >= sm_count AND bound <> 'compute'
    AND coalesce(request_kind, 'loads and stores') = 'loads and stores'
ORDER BY launch
