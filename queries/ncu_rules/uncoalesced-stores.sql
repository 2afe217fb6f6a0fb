/*
title = "Global stores are not coalesced"
severity = "warning"
evidence = ["store_sectors_per_request_ratio", "store_bytes_per_sector_ratio"]

[actions]
native = "Stage the results in shared memory and write them out in memory order."
triton = "Store along the contiguous dimension; transpose the tile with tl.trans before the store."
cute = "Stage the tile in shared memory and store it with a 128-bit copy."
pytorch = """
The operation writes against the memory order: request the output in the layout of the input, or write a tiled
kernel."""

[ncu_rules]
UncoalescedGlobalAccess = ""
MemoryCacheAccessPattern = "stores"

[params]
above = [8.0, "Sectors per request above which stores may be uncoalesced: common practice"]
bytes = [25.6, "Written bytes of a sector below which stores are uncoalesced: 80% of 32"]
widest = [16.0, "Sectors per request of the widest coalesced store"]
*/
SELECT launch, store_sectors_per_request_ratio, store_bytes_per_sector_ratio
FROM ncu_kernels
WHERE store_sectors_per_request_ratio > $above
    AND coalesce(store_bytes_per_sector_ratio < $bytes, store_sectors_per_request_ratio > $widest)
ORDER BY launch
