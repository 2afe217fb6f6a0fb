"""Reports of `nsys stats` without an alias among the reports here, and the commands that replace them.

The names are those of NVIDIA's Post-Collection Analysis Guide. The others are `aliases` in the headers of reports.
"""

from __future__ import annotations

from nsys_insight.errors import UsageError

_COMMANDS = {
    "cuda_api_gpu_sum": "nsys-insight api TRACE, and nsys-insight top TRACE",
    "cuda_gpu_sum": "nsys-insight top TRACE, and nsys-insight copies TRACE",
    "cuda_api_trace": 'nsys-insight sql TRACE "FROM api_calls ORDER BY start_ns"',
    "cuda_gpu_trace": 'nsys-insight sql TRACE "FROM gpu_ops ORDER BY start_ns"',
    "cuda_kern_exec_trace": 'nsys-insight sql TRACE "FROM launches ORDER BY start_ns"',
    "nvtx_kern_sum": "nsys-insight top TRACE --group-by nvtx",
    "nvtx_gpu_proj_trace": 'nsys-insight sql TRACE "FROM gpu_ops_in_nvtx ORDER BY start_ns"',
    "nvtx_pushpop_trace": 'nsys-insight sql TRACE "FROM nvtx_nesting ORDER BY start_ns"',
    "mpi_event_sum": "nsys-insight mpi TRACE",
    "mpi_msg_size_sum": "nsys-insight mpi TRACE",
    "mpi_event_trace": 'nsys-insight sql TRACE "FROM mpi_calls ORDER BY start_ns"',
    "osrt_sum": "nsys-insight cpu-work TRACE",
    "nvvideo_api_sum": "nsys-insight libraries TRACE",
}  # fmt: skip
_NOT_READ = (
    "dx11_pix_sum", "dx12_gpu_marker_sum", "dx12_pix_sum", "network_congestion",
    "opengl_khr_gpu_range_sum", "opengl_khr_range_sum", "syscall_sum", "vulkan_api_sum",
    "vulkan_api_trace", "vulkan_gpu_marker_sum", "vulkan_marker_sum", "wddm_queue_sum",
)  # fmt: skip
# Names before nsys 2022.4.
_OLD_NAMES = {
    "apigpusum": "cuda_api_gpu_sum", "cudaapisum": "cuda_api_sum", "cudaapitrace": "cuda_api_trace",
    "gpukerngbsum": "cuda_gpu_kern_gb_sum", "gpukernsum": "cuda_gpu_kern_sum",
    "gpumemsizesum": "cuda_gpu_mem_size_sum", "gpumemtimesum": "cuda_gpu_mem_time_sum", "gpusum": "cuda_gpu_sum",
    "gputrace": "cuda_gpu_trace", "kernexecsum": "cuda_kern_exec_sum", "kernexectrace": "cuda_kern_exec_trace",
    "nvtxgpuproj": "nvtx_gpu_proj_trace", "nvtxkernsum": "nvtx_kern_sum", "nvtxppsum": "nvtx_pushpop_sum",
    "nvtxpptrace": "nvtx_pushpop_trace", "nvtxsesum": "nvtx_startend_sum", "nvtxsum": "nvtx_sum",
    "openaccsum": "openacc_sum", "openmpevtsum": "openmp_sum", "osrtsum": "osrt_sum",
    "umcpupagefaults": "um_cpu_page_faults_sum", "unifiedmemory": "um_sum", "unifiedmemorytotals": "um_total_sum",
}  # fmt: skip


def explain_report(name: str) -> UsageError | None:
    """Return an error whose hint is the command that answers what a report of `nsys stats` does; None for other names.

    A suffix of nsys's own, as in `nvtx_kern_sum:base`, makes no difference.
    """
    report = name.partition(":")[0].replace("-", "_")
    if report == "stats":
        return UsageError("stats is a command of nsys", "nsys-insight diagnose TRACE, or nsys-insight top TRACE")
    if current_name := _OLD_NAMES.get(report):
        return UsageError(f"{report} is an old name of a report of nsys stats", f"nsys-insight {current_name} TRACE")
    if command := _COMMANDS.get(report):
        return UsageError(f"{report} is a report of nsys stats", command)
    if report in _NOT_READ:
        return UsageError(
            f"{report} is a report of nsys stats without a counterpart here", f"nsys stats --report {report} TRACE"
        )
    return None
