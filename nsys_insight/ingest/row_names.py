"""The words for the rows of nsys's tables in sentences."""

from __future__ import annotations

_ROWS = {
    "StringIds": "names",
    "CUPTI_ACTIVITY_KIND_KERNEL": "kernels",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "API calls",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "copies",
    "CUPTI_ACTIVITY_KIND_MEMSET": "memsets",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "graph launches",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "synchronizations",
    "CUDA_GPU_MEMORY_USAGE_EVENTS": "memory events",
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS": "CPU page faults",
    "CUDA_UM_GPU_PAGE_FAULT_EVENTS": "GPU page faults",
    "NVTX_EVENTS": "NVTX ranges",
    "GPU_METRICS": "GPU metrics",
    "OSRT_API": "operating system calls",
    "MPI_P2P_EVENTS": "MPI messages",
    "MPI_COLLECTIVES_EVENTS": "MPI collectives",
    "PROFILER_OVERHEAD": "profiler overhead",
    "DIAGNOSTIC_EVENT": "messages of nsys",
}


def name_rows(table: str) -> str:
    """Return the word for the rows of a table, such as kernels."""
    return _ROWS.get(table, f"rows of {table}")
