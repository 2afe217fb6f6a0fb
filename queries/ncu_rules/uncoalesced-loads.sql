/*
title = "Global loads are not coalesced"
severity = "warning"
evidence = ["load_sectors_per_request_ratio", "load_bytes_per_sector_ratio", "l1_hit_pct"]

[actions]
native = """
Let neighboring threads read neighboring addresses: index by threadIdx.x last, turn arrays of structs into structs
of arrays, go through shared memory where the order is fixed."""
triton = """
Say what is contiguous: tl.multiple_of and tl.max_contiguous on the offsets; block pointers (tl.make_block_ptr) with
the right order for a transposed input."""
cute = """
Copy 128 bits at a time (num_bits_per_copy = 128), choose the layout whose fast dimension is the threads', promise
assumed_align = 16."""
pytorch = """
Threads of a warp read distant addresses. For a strided input, keep the tensor in the layout in which it is used, or
fold the transpose into the matrix product that follows. For a gather, sort or group the indices, or make the rows
that it reads longer."""
inductor = "The input's strides do not match the loop: make it contiguous once, before the compiled region."

[ncu_rules]
UncoalescedGlobalAccess = ""
MemoryCacheAccessPattern = "loads"

[params]
above = [8.0, "Sectors per request above which loads may be uncoalesced: common practice"]
bytes = [25.6, "Used bytes of a sector below which loads are uncoalesced: 80% of 32, the target for load efficiency"]
widest = [16.0, """Sectors per request of the widest coalesced load (32 threads x 16 bytes): the limit if bytes per
    sector were not measured"""]
*/
-- A warp that loads 16 bytes per thread needs 16 sectors and is coalesced: many sectors alone prove nothing.
SELECT launch, load_sectors_per_request_ratio, load_bytes_per_sector_ratio, l1_hit_pct
FROM ncu_kernels
WHERE load_sectors_per_request_ratio > $above
    AND coalesce(load_bytes_per_sector_ratio < $bytes, load_sectors_per_request_ratio > $widest)
ORDER BY launch
