"""The tables of nsys's SQLite exports by version, as in real exports."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

# nsys packs its ids: 16 bits of host and VM, 24 of process, 24 of thread.
MACHINE = 1 << 48
# "No stream", "no event": CUPTI's invalid id, written as an unsigned number.
NONE = 4_294_967_295


class Column(NamedTuple):
    """One column: NULL is refused where it is `required`, `key` makes it the row's own id."""

    name: str
    type: str
    required: bool
    key: bool

    @property
    def ddl(self) -> str:
        return f'"{self.name}" {self.type}{" NOT NULL" if self.required else ""}'


def primary_key(columns: Sequence[Column]) -> str:
    """Return the part of a table's definition that names its key, if it has one."""
    names = ", ".join(f'"{column.name}"' for column in columns if column.key)
    return f", PRIMARY KEY ({names})" if names else ""


# As nsys 2025.3 writes them. `name` is a nullable INTEGER, `name!` is NOT NULL, `name:TEXT` is of another type.
TABLES = {
    "StringIds": "id:KEY value:TEXT!",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start! end! eventClass! globalTid correlationId nameId! returnValue! callchainId",
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        "start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid demangledName! shortName! "
        "mangledName launchType cacheConfig registersPerThread! gridX! gridY! gridZ! blockX! blockY! blockZ! "
        "staticSharedMemory! dynamicSharedMemory! localMemoryPerThread! localMemoryTotal! gridId! "
        "sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig"
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        "start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid bytes! copyKind! "
        "deprecatedSrcId srcKind dstKind srcDeviceId srcContextId dstDeviceId dstContextId migrationCause graphNodeId "
        "virtualAddress copyCount"
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": (
        "start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid value! bytes! graphNodeId "
        "memKind"
    ),
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": (
        "start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid graphId! graphExecId!"
    ),
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (
        "start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid deprecatedSyncType "
        "syncType! eventId! eventSyncId"
    ),
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": (
        "deviceId! contextId! greenContextId streamId! correlationId globalPid eventId! eventSyncId"
    ),
    "CUDA_GPU_MEMORY_USAGE_EVENTS": (
        "start! globalPid! deviceId! contextId! address! pc! bytes! memKind! memoryOperationType! name:TEXT "
        "correlationId streamId localMemoryPoolAddress localMemoryPoolReleaseThreshold localMemoryPoolSize "
        "localMemoryPoolUtilizedSize importedMemoryPoolAddress importedMemoryPoolProcessId"
    ),
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS": (
        "start! globalPid! address! originalFaultPc CpuInstruction! module! unresolvedFaultPc"
    ),
    "CUDA_UM_GPU_PAGE_FAULT_EVENTS": ("start! end! globalPid! deviceId! address! numberOfPageFaults! faultAccessType!"),
    "NVTX_EVENTS": (
        "start! end eventType! rangeId category color text:TEXT globalTid endGlobalTid textId domainId uint64Value "
        "int64Value doubleValue:REAL uint32Value int32Value floatValue:REAL jsonTextId jsonText:TEXT binaryData:TEXT"
    ),
    "NVTX_PAYLOAD_SCHEMAS": "domainId schemaId name:TEXT type flags numEntries payloadSize alignTo",
    "NVTX_PAYLOAD_SCHEMA_ENTRIES": (
        "domainId! schemaId! idx! flags type name:TEXT description:TEXT arrayOrUnionDetail offset"
    ),
    "OSRT_API": "start! end! eventClass! globalTid nameId! returnValue! nestingLevel callchainId!",
    "CUDA_GRAPH_NODE_EVENTS": "start! end! eventClass! globalTid nameId! graphNodeId! originalGraphNodeId",
    "CUPTI_ACTIVITY_KIND_OPENACC_DATA": (
        "start! end! nameId! globalTid eventKind! DeviceType! lineNo! cuDeviceId! cuContextId! cuStreamId! srcFile "
        "funcName bytes varName"
    ),
    "CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH": (
        "start! end! nameId! globalTid eventKind! DeviceType! lineNo! cuDeviceId! cuContextId! cuStreamId! srcFile "
        "funcName numGangs numWorkers vectorLength kernelName"
    ),
    "CUPTI_ACTIVITY_KIND_OPENACC_OTHER": (
        "start! end! nameId! globalTid eventKind! DeviceType! lineNo! cuDeviceId! cuContextId! cuStreamId! srcFile "
        "funcName"
    ),
    "OPENMP_EVENT_KIND_THREAD": "start! end! eventClass! globalTid correlationId nameId! eventKind threadId threadType",
    "OPENMP_EVENT_KIND_PARALLEL": (
        "start! end! eventClass! globalTid correlationId nameId! eventKind parallelId parentTaskId"
    ),
    "OPENMP_EVENT_KIND_SYNC_REGION_WAIT": (
        "start! end! eventClass! globalTid correlationId nameId! eventKind parallelId taskId kind"
    ),
    "OPENMP_EVENT_KIND_SYNC_REGION": (
        "start! end! eventClass! globalTid correlationId nameId! eventKind parallelId taskId kind"
    ),
    "OPENMP_EVENT_KIND_TASK": (
        "start! end! eventClass! globalTid correlationId nameId! eventKind parallelId taskId kind"
    ),
    "OPENMP_EVENT_KIND_MASTER": "start! end! eventClass! globalTid correlationId nameId! eventKind parallelId taskId",
    "OPENMP_EVENT_KIND_REDUCTION": (
        "start! end! eventClass! globalTid correlationId nameId! eventKind parallelId taskId"
    ),
    "OPENMP_EVENT_KIND_MUTEX_WAIT": (
        "start! end! eventClass! globalTid correlationId nameId! eventKind kind waitId taskId"
    ),
    "OPENMP_EVENT_KIND_CRITICAL_SECTION": (
        "start! end! eventClass! globalTid correlationId nameId! eventKind kind waitId"
    ),
    "OPENMP_EVENT_KIND_WORKSHARE": (
        "start! end! eventClass! globalTid correlationId nameId! eventKind kind parallelId taskId count"
    ),
    "CUDNN_EVENTS": "start! end! eventClass! globalTid nameId!",
    "CUBLAS_EVENTS": "start! end! eventClass! globalTid nameId!",
    "NVVIDEO_ENCODER_API": "start! end! eventClass! globalTid nameId!",
    "NVVIDEO_DECODER_API": "start! end! eventClass! globalTid nameId!",
    "NVVIDEO_JPEG_API": "start! end! eventClass! globalTid nameId!",
    "GPU_VIDEO_ENGINE_WORKLOAD": "start! end! globalPid engineType",
    "GPU_VIDEO_ENGINE_MISSING": "rangeCount",
    "ENUM_VIDEO_ENGINE_TYPE": "id:KEY name:TEXT label:TEXT",
    "NET_NIC_METRIC": "start! end! globalId! metricsListId! metricsIdx! value!",
    "TARGET_INFO_NETWORK_METRICS": "metricsListId! metricsIdx! name:TEXT! description:TEXT! unit:TEXT!",
    "NIC_ID_MAP": "nicId! globalId!",
    "TARGET_INFO_NIC_INFO": "GUID! stateName:TEXT! nicId! name:TEXT! deviceId! vendorId! linkLayer!",
    "GPU_CONTEXT_SWITCH_EVENTS": "tag! vmId! seqNo! contextId! timestamp! globalPid gpuId",
    "OSRT_FILE_ACCESS_EVENTS": (
        "fileAccessId! threadId! startedAt! endedAt! eventType! apiCallId! bytesProcessed! context:TEXT!"
    ),
    "OSRT_FILE_ACCESS_DESCRIPTORS": "fileAccessId! processId! openedAt! closedAt! filePath:TEXT!",
    "ENUM_OSRT_FILE_ACCESS_EVENT_TYPE": "id:KEY name:TEXT label:TEXT",
    "MPI_P2P_EVENTS": "start! end globalTid textId commHandle tag remoteRank size requestHandle",
    "MPI_COLLECTIVES_EVENTS": "start! end globalTid textId commHandle rootRank size recvSize requestHandle",
    "MPI_START_WAIT_EVENTS": "start! end globalTid textId requestHandle",
    "MPI_OTHER_EVENTS": "start! end globalTid textId",
    "MPI_RANKS": "globalTid! rank!",
    "MPI_COMMUNICATORS": ("rank timestamp commHandle parentHandle localRank size groupRoot groupRootUid members:TEXT"),
    "CUDA_CALLCHAINS": "id:KEY symbol! module! unresolved originalIP stackDepth:KEY",
    "OSRT_CALLCHAINS": (
        "id:KEY symbol! module! kernelMode thumbCode unresolved specialEntry originalIP unwindMethod stackDepth:KEY"
    ),
    "SAMPLING_CALLCHAINS": (
        "id:KEY symbol! module! kernelMode thumbCode unresolved specialEntry originalIP unwindMethod stackDepth:KEY"
    ),
    "COMPOSITE_EVENTS": "id:KEY start! cpu threadState globalTid cpuCycles!",
    "SCHED_EVENTS": "start! cpu! isSchedIn! globalTid threadState threadBlock",
    "PROFILER_OVERHEAD": "start! end! globalTid nameId! returnValue!",
    "DIAGNOSTIC_EVENT": "timestamp! timestampType! source! severity! text:TEXT! globalPid",
    "GPU_METRICS": "rawTimestamp! timestamp! typeId! metricId! value!",
    "TARGET_INFO_GPU_METRICS": "typeId! sourceId! typeName:TEXT! metricId! metricName:TEXT!",
    "TARGET_INFO_GPU": (
        "vmId! id! name:TEXT busLocation:TEXT isDiscrete l2CacheSize totalMemory memoryBandwidth clockRate smCount "
        "pwGpuId uuid:TEXT luid chipName:TEXT cuDevice ctxswDevPath:TEXT ctrlDevPath:TEXT revision nodeMask "
        "constantMemory maxIPC maxRegistersPerBlock maxShmemPerBlock maxShmemPerBlockOptin maxShmemPerSm "
        "maxRegistersPerSm threadsPerWarp asyncEngines maxWarpsPerSm maxBlocksPerSm maxThreadsPerBlock maxBlockDimX "
        "maxBlockDimY maxBlockDimZ maxGridDimX maxGridDimY maxGridDimZ computeMajor computeMinor smMajor smMinor"
    ),
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId! pid!",
    "TARGET_INFO_CUDA_CONTEXT_INFO": (
        "nullStreamId! hwId! vmId! processId! deviceId! contextId! parentContextId isGreenContext"
    ),
    "TARGET_INFO_CUDA_STREAM": "streamId! hwId! vmId! processId! contextId! priority! flag!",
    "TARGET_INFO_NVTX_CUDA_STREAM": "name:TEXT! hwId! vmId! processId! deviceId! contextId! streamId!",
    "TARGET_INFO_SYSTEM_ENV": "globalVid devStateName:TEXT! name:TEXT! nameEnum! value:TEXT!",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime:TEXT localTime:TEXT",
    "ANALYSIS_DETAILS": "globalVid! duration! startTime! stopTime!",
    "PROCESSES": "globalPid pid name:TEXT",
    "ThreadNames": "nameId! priority globalTid",
    "META_DATA_CAPTURE": "name:TEXT! value:TEXT",
    "META_DATA_EXPORT": "name:TEXT! value:TEXT",
}

ENUMS: dict[str, dict[int, str]] = {
    "ENUM_NSYS_EVENT_CLASS": {0: "CUDA runtime", 1: "CUDA driver", 6: "NVTX start", 67: "CUDA backtrace"},
    "ENUM_NSYS_EVENT_TYPE": {34: "NvtxMark", 59: "NvtxPushPopRange", 60: "NvtxStartEndRange", 75: "NvtxDomainCreate"},
    "ENUM_CUDA_MEMCPY_OPER": dict(
        enumerate(
            (
                "Unknown", "Host-to-Device", "Device-to-Host", "Host-to-Array", "Array-to-Host", "Array-to-Array",
                "Array-to-Device", "Device-to-Array", "Device-to-Device", "Host-to-Host", "Peer-to-Peer",
                "Unified Host-to-Device", "Unified Device-to-Host", "Unified Device-to-Device",
            )
        )
    ),
    "ENUM_CUDA_MEM_KIND": dict(
        enumerate(("Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static", "Unknown"))
    ),
    "ENUM_CUDA_UNIF_MEM_MIGRATION": dict(
        enumerate(("Unknown", "User prefetch", "Page fault", "Speculative prefecth", "Eviction", "Access counters"))
    ),
    "ENUM_CUDA_DEV_MEM_EVENT_OPER": {0: "Allocation", 1: "Deallocation"},
    "ENUM_CUDA_KERNEL_LAUNCH_TYPE": {0: "Unknown", 1: "Regular", 2: "Coop Single Device", 3: "Coop Multi Device"},
    "ENUM_CUPTI_STREAM_TYPE": {
        0: "Unknown stream type", 1: "Default stream", 2: "Non-blocking stream", 3: "Null stream",
    },
    "ENUM_CUPTI_SYNC_TYPE": {0: "Unknown", 1: "Event sync", 2: "Stream wait sync", 3: "Stream sync", 4: "Context sync"},
    "ENUM_DIAGNOSTIC_SEVERITY_LEVEL": {0: "Unknown", 1: "Info", 2: "Warning", 3: "Error", 4: "Verbose"},
    "ENUM_DIAGNOSTIC_SOURCE_TYPE": {0: "Unknown source", 1: "Injection", 2: "Daemon", 3: "Analysis"},
}  # fmt: skip

# Columns that hold an enum's number, or the id of a string. (`ENUM_CUPTI_SYNC_TYPE` is left out: its labels are not
# what the rows mean; see `Version.sync_types`.)
ENUM_OF = {
    "copyKind": "ENUM_CUDA_MEMCPY_OPER",
    "srcKind": "ENUM_CUDA_MEM_KIND",
    "dstKind": "ENUM_CUDA_MEM_KIND",
    "memKind": "ENUM_CUDA_MEM_KIND",
    "migrationCause": "ENUM_CUDA_UNIF_MEM_MIGRATION",
    "memoryOperationType": "ENUM_CUDA_DEV_MEM_EVENT_OPER",
    "launchType": "ENUM_CUDA_KERNEL_LAUNCH_TYPE",
    "flag": "ENUM_CUPTI_STREAM_TYPE",
    "severity": "ENUM_DIAGNOSTIC_SEVERITY_LEVEL",
    "source": "ENUM_DIAGNOSTIC_SOURCE_TYPE",
}
STRING_COLUMNS = frozenset(
    {
        "nameId",
        "demangledName",
        "shortName",
        "mangledName",
        "textId",
        "srcFile",
        "funcName",
        "varName",
        "kernelName",
        "jsonTextId",
        "symbol",
        "module",
    }
)
TIME_COLUMNS = {"start", "end", "timestamp", "rawTimestamp", "startedAt", "endedAt", "openedAt", "closedAt"}


@dataclass(frozen=True)
class Version:
    """The differences of one version of nsys from 2025.3.

    `lacks` names a table, a `TABLE.column`, or a column of every table. `changes` adds columns or replaces their
    declarations.
    """

    product: str
    schema: str
    sync_types: dict[str, int]
    lacks: str = ""
    changes: dict[str, str] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    has_enums: bool = True
    # 2022 repeats each runtime call as a row of event class 67 around it, with the same correlation id.
    has_backtraces: bool = False

    def has(self, table: str, column: str = "*") -> bool:
        """Whether this nsys writes the table, or the column of it."""
        return not {table, column, f"{table}.{column}"} & set(self.lacks.split())


# Until 2024 the number means something else than the same file's enum table says, and in 2025 a stream sync is 2.
OLD_SYNC_TYPES = {"device": 1, "event": 2, "stream": 3}
NEW_SYNC_TYPES = {"event": 1, "stream": 2, "device": 4}

BEFORE_2025 = (
    "NVTX_PAYLOAD_SCHEMAS NVTX_PAYLOAD_SCHEMA_ENTRIES "
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE DIAGNOSTIC_EVENT GPU_METRICS TARGET_INFO_GPU_METRICS TARGET_INFO_CUDA_DEVICE "
    "copyCount binaryData deprecatedSyncType eventSyncId CUDA_GPU_MEMORY_USAGE_EVENTS.streamId"
)
BEFORE_2023 = BEFORE_2025 + (
    " META_DATA_CAPTURE TARGET_INFO_CUDA_CONTEXT_INFO CUDA_GRAPH_NODE_EVENTS greenContextId "
    "localMemoryPoolAddress localMemoryPoolSize "
    "localMemoryPoolReleaseThreshold localMemoryPoolUtilizedSize importedMemoryPoolAddress importedMemoryPoolProcessId"
)
VERSIONS = {
    "2025.3": Version("2025.3.2.0", "3.20.3", NEW_SYNC_TYPES),
    "2023.4": Version("2023.4.4.54", "3.7.2", OLD_SYNC_TYPES, BEFORE_2025),
    "2022.2": Version(
        "2022.2.1.31",
        "2.9.1",
        OLD_SYNC_TYPES,
        BEFORE_2023 + " SCHED_EVENTS.threadState SCHED_EVENTS.threadBlock",
        changes={
            "SAMPLING_CALLCHAINS": "symbolName:TEXT",
            "CUPTI_ACTIVITY_KIND_RUNTIME": "name:TEXT",
            "CUPTI_ACTIVITY_KIND_MEMCPY": "name:TEXT",
            "TARGET_INFO_SYSTEM_ENV": "globalVid!",
        },
        renamed={"META_DATA_EXPORT": "EXPORT_META_DATA"},
        has_enums=False,
        has_backtraces=True,
    ),
}

# TARGET_INFO_GPU of an H200, as nsys describes it, with some of its columns.
H200: dict[str, Any] = {
    "vmId": MACHINE, "name": "NVIDIA H200", "isDiscrete": 1, "l2CacheSize": 62_914_560, "totalMemory": 150_109_880_320,
    "memoryBandwidth": 4_814_304_000_000, "clockRate": 1_980_000_000, "smCount": 132, "chipName": "GH100",
    "constantMemory": 65_536, "maxRegistersPerBlock": 65_536, "maxShmemPerBlock": 49_152,
    "maxShmemPerBlockOptin": 232_448, "maxShmemPerSm": 233_472, "maxRegistersPerSm": 65_536, "threadsPerWarp": 32,
    "asyncEngines": 3, "maxWarpsPerSm": 64, "maxBlocksPerSm": 32, "maxThreadsPerBlock": 1024, "maxBlockDimX": 1024,
    "maxBlockDimY": 1024, "maxBlockDimZ": 64, "maxGridDimX": 2_147_483_647, "maxGridDimY": 65_535,
    "maxGridDimZ": 65_535, "computeMajor": 9, "computeMinor": 0, "smMajor": 9, "smMinor": 0,
}  # fmt: skip


@cache
def columns(table: str, version: str = "2025.3") -> list[Column]:
    """Return the columns of a table in order; an empty list if this version of nsys lacks the table."""
    kind = VERSIONS[version]
    if table in ENUMS:
        declarations = "id:KEY name:TEXT label:TEXT" if kind.has_enums else ""
    else:
        declarations = f"{TABLES[table]} {kind.changes.get(table, '')}"
    declared = {column.name: column for column in map(_column, declarations.split())}
    return [column for name, column in declared.items() if kind.has(table, name)]


def _column(word: str) -> Column:
    name, _, kind = word.rstrip("!").partition(":")
    if kind == "KEY":
        return Column(name, "INTEGER", required=True, key=True)
    return Column(name, kind or "INTEGER", required=word.endswith("!"), key=False)
