"""Words of other tools for commands, options and reports, and what they are called here.

The names of reports are those of NVIDIA's Post-Collection Analysis Guide. Most reports of `nsys stats` are `aliases` in
the header of a report here.
"""

from __future__ import annotations

from nsys_insight.errors import UsageError

_SYNONYMS = {
    "--version": ("version",), "bench": ("benchmark",), "capture": ("profile", "record"), "copies": ("memcpy",),
    "diagnose": ("analyse", "analyze", "bottleneck", "bottlenecks", "slow", "summary", "why"), "diff": ("compare",),
    "fusion": ("fuse",), "graph-candidates": ("graphs",), "help": ("list",),
    "idle": ("stalls", "starved", "utilization"), "per-token": ("tokens",), "report": ("timeline", "trace"),
    "shell": ("explore",), "sql": ("query",), "syncs": ("blocked", "waits"), "top": ("hotspots",),
}  # fmt: skip
COMMANDS = {synonym: command for command, synonyms in _SYNONYMS.items() for synonym in synonyms}
_GROUP, _LIMIT, _SORT, _NAME = "--group-by", "--limit N", "--sort COLUMN", "--name PATTERN"
# What to type for an option, if the command has it.
OPTIONS = {
    "--by": (_GROUP, _SORT),
    "--csv": ("-f csv",),
    "--gpu": ("--device N",),
    "--group": (_GROUP,),
    "--json": ("-f json",),
    "--pid": ("--process N",),
    "--range": ("--nvtx NAME",),
    **dict.fromkeys(("--count", "--head", "--rows", "--top"), (_LIMIT,)),
    **dict.fromkeys(("--filter", "--grep", "--kernel"), (_NAME,)),
    **dict.fromkeys(("--order-by", "--sort-by"), (_SORT,)),
}
# Options of earlier versions, by command, and what does the same.
REPLACED_OPTIONS = {
    ("classify", "--kernels"): "classify-kernels",
    ("fusion", "--explain-candidate"): "fusion-candidate",
    ("idle", "--by"): "gap-places, gap-sizes or host",
    ("idle", "--list"): "gaps",
    ("per-token", "--by-phase"): "per-phase",
    ("check", "--markdown"): "check TRACE -o check.md",
    ("ncu", "--change"): "experiment try CHANGE --ncu FILE",
    ("ncu", "--log"): "experiment try CHANGE --ncu FILE",
    ("report", "--baseline"): "diff BEFORE AFTER -o changed.html",
    ("report", "--template"): "brief TRACE",
    ("top", "--view"): "launch-configs, classify-kernels, occupancy or roofline",
}
# The hint for an option where the command does not have it.
OTHER_HINTS = {"--sort": "reports sort by a column (nsys-insight top --sort calls); sql has ORDER BY"}
# Reports of nsys stats without such an alias, and the commands that replace them.
_REPORT_COMMANDS = {
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
_UNREAD_REPORTS = (
    "dx11_pix_sum", "dx12_gpu_marker_sum", "dx12_pix_sum", "network_congestion",
    "opengl_khr_gpu_range_sum", "opengl_khr_range_sum", "syscall_sum", "vulkan_api_sum",
    "vulkan_api_trace", "vulkan_gpu_marker_sum", "vulkan_marker_sum", "wddm_queue_sum",
)  # fmt: skip
# Names before nsys 2022.4.
_OLD_REPORT_NAMES = {
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
    if current_name := _OLD_REPORT_NAMES.get(report):
        return UsageError(f"{report} is an old name of a report of nsys stats", f"nsys-insight {current_name} TRACE")
    if command := _REPORT_COMMANDS.get(report):
        return UsageError(f"{report} is a report of nsys stats", command)
    if report in _UNREAD_REPORTS:
        return UsageError(
            f"{report} is a report of nsys stats without a counterpart here", f"nsys stats --report {report} TRACE"
        )
    return None
