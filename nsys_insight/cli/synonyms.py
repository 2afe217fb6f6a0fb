"""Words of other tools for commands and options, and what they are called here."""

COMMANDS = {
    "analyse": "diagnose",
    "analyze": "diagnose",
    "benchmark": "bench",
    "blocked": "syncs",
    "bottleneck": "diagnose",
    "bottlenecks": "diagnose",
    "compare": "diff",
    "explore": "shell",
    "fuse": "fusion",
    "graphs": "graph-candidates",
    "hotspots": "top",
    "list": "help",
    "memcpy": "copies",
    "profile": "capture",
    "query": "sql",
    "record": "capture",
    "slow": "diagnose",
    "stalls": "idle",
    "starved": "idle",
    "summary": "diagnose",
    "timeline": "report",
    "tokens": "per-token",
    "trace": "report",
    "utilization": "idle",
    "version": "--version",
    "waits": "syncs",
    "why": "diagnose",
}
_GROUP, _LIMIT, _SORT, _NAME = "--group-by", "--limit N", "--sort COLUMN", "--name PATTERN"
# What to type for an option, if the command has it.
OPTIONS = {
    "--by": (_GROUP, _SORT),
    "--count": (_LIMIT,),
    "--csv": ("-f csv",),
    "--filter": (_NAME,),
    "--gpu": ("--device N",),
    "--grep": (_NAME,),
    "--group": (_GROUP,),
    "--head": (_LIMIT,),
    "--json": ("-f json",),
    "--kernel": (_NAME,),
    "--order-by": (_SORT,),
    "--pid": ("--process N",),
    "--range": ("--nvtx NAME",),
    "--rows": (_LIMIT,),
    "--sort-by": (_SORT,),
    "--top": (_LIMIT,),
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
