-- What bounds a kernel, by how busy SMs and memory are, each in % of its peak. The first true condition counts: the
-- side that is 20 points busier is the bound, even if it is not busy.
CREATE MACRO bound_of(sm_pct, memory_pct, margin := 20, low := 40, high := 60) AS CASE
    WHEN sm_pct > memory_pct + margin THEN 'compute'
    WHEN memory_pct > sm_pct + margin THEN 'memory'
    WHEN sm_pct < low AND memory_pct < low THEN 'latency'
    WHEN sm_pct > high AND memory_pct > high THEN 'balanced'
    ELSE 'unknown'
END;

-- The part of the memory system that a memory-bound kernel waits for. Loads from the shared memory of another block
-- pass L1, without a hit, but not L2.
CREATE MACRO memory_level_of(dram_pct, l2_hit_pct, l1_hit_pct, l1_pct, l2_pct) AS CASE
    WHEN dram_pct > 70 THEN 'DRAM'
    WHEN l2_hit_pct < 50 AND dram_pct > 40 THEN 'L2 misses'
    WHEN l1_hit_pct < 20 AND l2_hit_pct >= 50 AND coalesce(l1_pct <= 10 * l2_pct, true) THEN 'L2'
    WHEN l1_hit_pct < 20 THEN 'L1'
END;
