/*
description = """One row per rank: a process on a GPU that runs NCCL kernels, or else calls MPI collectives, in one
    trace or in several. For late ranks, it says what makes the others wait."""
[columns]
rank = """Number of the rank: from NCCL, MPI, the launcher, the file name, or else in order; the report `ranks` says
    which"""
trace = "The trace, where there are several"
nccl_kernels = "NCCL kernels that it ran; without them, its MPI collectives"
nccl_ns = "Sum of their durations"
clock_offset_ns = """How far its clock was ahead of that of the first trace, by the ends of collectives; NULL where
    traces do not say when they began"""
clock_drift_ppm = """How much faster its clock was, in parts per million; 0 where no drift can be distinguished from the
    error"""
host_number = """Host of the rank, by the GPUs that traces list: traces that have a GPU in common are of one host; NULL
    where several traces list none"""
gpu = "Product name of its GPU; NULL where the trace does not say"
cause = """Why it is late: gpu (its GPU is busy longer than the others), host (its GPU is idle longer), both; NULL where
    it is not late, or the numbers do not say"""
more_busy_ns = "How much longer its GPU is busy than the others in a step in which it is late; a mean"
more_idle_ns = "How much longer its GPU is idle in such a step"
busy_ratio = "GPU busy time in the steps in which the rank is late, relative to the median of the other ranks"
host = "What its host did in the longest gaps of these steps: the name of an API call, or CPU work"
place = "The NVTX range in which it did so"
host_ns = "Host time without waits in the steps in which the rank is late; a mean"
others_host_ns = "Host time without waits of the host that works longest among the ranks that are not late; a median"
stretch_ns = """The longest stretch of such a step in which its host is in no CUDA call, a mean; NULL unless it explains
    half of the delay"""
min_stretch_ns = "The shortest of these stretches"
max_stretch_ns = "The longest of these stretches"
others_stretch_ns = """Time at a stretch outside CUDA calls of the host that works longest among the ranks that are not
    late"""
stretch_before = "What its host usually launches next: a kernel or a copy"
launch_call_ratio = "Duration of the launch calls of collectives, relative to those of that other host"
*/
SELECT r.*, d.cause, d.more_busy_ns, d.more_idle_ns, d.busy_ratio, d.host, d.place, d.host_ns,
    d.others_host_ns, d.stretch_ns, d.min_stretch_ns, d.max_stretch_ns,
    d.others_stretch_ns, d.stretch_before, d.launch_call_ratio
FROM facts.ranks AS r
LEFT JOIN facts.rank_delays AS d USING (rank);
