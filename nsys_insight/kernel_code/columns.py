"""The columns of answers about machine code."""

from __future__ import annotations

from nsys_insight.session.answer import Column

LOOPS = (
    Column("name", "VARCHAR", "The kernel"),
    Column("part", "VARCHAR", "The kernel as a whole, or a loop in it: 1.2 is the second loop in the first"),
    Column("source", "VARCHAR", "Source lines that most of it comes from, if compiled with -lineinfo"),
    Column("instructions", "BIGINT", "Instructions in the code"),
    Column("multiply_adds", "BIGINT", "Multiply-adds among them: FFMA, HFMA2, DFMA, IDP and all tensor core "
        "instructions"),
    Column("global_loads", "BIGINT", "Loads from global memory, asynchronous copies (LDGSTS) included"),
    Column("compute_per_load_ratio", "DOUBLE", "Multiply-adds per load; NULL without loads, and where TMA loads tiles"),
    Column("load_bits", "VARCHAR", "Widths of the loads from global memory, in bits, and the number of each"),
    Column("store_bits", "VARCHAR", "The same for the stores to global memory"),
    Column("async_copies", "BIGINT", "Asynchronous copies to shared memory: LDGSTS", detail=True),
    Column("tma_copies", "BIGINT", "Copies by the tensor memory accelerator", detail=True),
    Column("shared_loads", "BIGINT", "Loads from shared memory (LDS, LDSM)", detail=True),
    Column("shared_stores", "BIGINT", "Stores to shared memory (STS, STSM)", detail=True),
    Column("local_load_bytes", "BIGINT", "Bytes per thread that its loads from local memory move: spills, arrays"),
    Column("local_store_bytes", "BIGINT", "Bytes per thread that its stores to local memory move"),
    Column("barriers", "BIGINT", "Barriers of the block or cluster; for a loop, in one iteration"),
    Column("shuffles", "BIGINT", "Exchanges between threads of a warp", detail=True),
    Column("special", "BIGINT", "Special functions: MUFU", detail=True),
    Column("branches", "BIGINT", "Jumps and what belongs to them", detail=True),
    Column("predicated", "BIGINT", "Instructions that run under a predicate", detail=True),
    Column("unknown", "BIGINT", "Instructions whose mnemonic is not in the catalog", detail=True),
    Column("issue_cycles", "BIGINT", "Sum of the stall counts, in cycles", detail=True),
    Column("stall_codes", "VARCHAR", "Stall counts of multiply-adds: S04 is four cycles", detail=True),
    Column("executed", "BIGINT", "Instructions that warps executed, as ncu counted", detail=True),
    Column("executed_pct", "DOUBLE", "Share of the kernel's executed instructions"),
    Column("samples_pct", "DOUBLE", "Share of the kernel's stall samples"),
    Column("address", "VARCHAR", "Addresses of its first and last instruction", detail=True),
    Column("architecture", "VARCHAR", "What it was compiled for", detail=True),
    Column("mangled_name", "VARCHAR", "The linker's name", detail=True),
    Column("reading", "VARCHAR", "What stands out"),
)  # fmt: skip
CLASSES = (
    Column("name", "VARCHAR", "The kernel"),
    Column("part", "VARCHAR", "The kernel as a whole, or a loop in it"),
    Column("class", "VARCHAR", "What the instructions do"),
    Column("instructions", "BIGINT", "How many are in the code"),
    Column("predicated", "BIGINT", "How many of them run under a predicate"),
    Column("executed", "BIGINT", "How many warps executed, as ncu counted"),
    Column("threads_executed", "BIGINT", "The same for threads whose predicate was true"),
    Column("mnemonics", "VARCHAR", "The instructions, with the number of each"),
    Column("about", "VARCHAR", "What the class is", detail=True),
    Column("architecture", "VARCHAR", "What it was compiled for", detail=True),
)
LINES = (
    Column("name", "VARCHAR", "The kernel"),
    Column("samples_pct", "DOUBLE", "Share of the kernel's stall samples"),
    Column("stall", "VARCHAR", "The most frequent stall reason of its warps"),
    Column("stall_pct", "DOUBLE", "Share of this reason in the line's samples"),
    Column("part", "VARCHAR", "The innermost loop that it is in"),
    Column("source", "VARCHAR", "Line of the source"),
    Column("address", "VARCHAR", "Address in the kernel"),
    Column("instruction", "VARCHAR", "The instruction that waited, often for the result of an earlier one"),
    Column("executed", "BIGINT", "How often warps executed it"),
    Column("samples", "BIGINT", "Stall samples at it", detail=True),
)
