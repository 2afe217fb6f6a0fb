/*
title = "Peak rates and machine balance of the GPU"
topic = "kernels"
place = 9
question = "What is the peak rate of the GPU in each precision?"
examples = ["", "--arch 9.0"]
page = false
main = ["gpu", "precision", "tflop_per_s", "memory_bytes_per_s", "balance_ratio", "sm_count", "clock_hz"]
description = """
Peak operations per second of each GPU and precision: SMs x maximum clock (both from the trace) x operations per SM
and cycle (the catalog, by compute capability; dense, a multiply-add counted as two). fp64 and fp32 are ordinary
arithmetic, the others tensor cores; fp16 also stands for bf16. balance is this peak divided by the peak memory
bandwidth."""
reading = """
A kernel with fewer operations per byte of memory traffic than balance is memory-bound, whatever else it does.
Clocks drop under load: on H100 and H200, tensor cores reach about 90% of the peak. GeForce cards run tf32 and fp16
at half of it."""
empty = "The trace does not describe the machine's GPUs, or their compute capability is not in the catalog"

[columns]
gpu = "Product name"
gpu_id = "The machine's number of the GPU"
compute_capability = "Compute capability"
precision = "Precision of the operations"
tflop_per_s = "Peak, in 10^12 operations per second"
memory_bytes_per_s = "Peak bandwidth of the device's memory"
balance_ratio = "Operations per byte at which both peaks are reached"
sm_count = "Streaming multiprocessors"
clock_hz = "Maximum SM clock"
flop_per_cycle = "Operations per SM and cycle"
*/
SELECT
    gpu, gpu_id, compute_capability, precision, tflop_per_s, memory_bytes_per_s, balance_ratio, sm_count, clock_hz,
    flop_per_cycle
FROM gpu_peaks
ORDER BY gpu_id, flop_per_cycle, precision
