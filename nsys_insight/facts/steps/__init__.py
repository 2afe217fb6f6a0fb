"""Steps: the repetitions of the work, found by NVTX ranges, CUDA graphs or the repeated sequence of operations."""
