"""What to type: two examples for each command that is no report (a report's are in its header), for its help."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nsys_insight.packs.pack import Pack

_TRACE = "trace.nsys-rep"
# What stands behind the name of the program.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "diagnose": ("diagnose trace.nsys-rep", "diagnose 'run/rank*.nsys-rep' --steady"),
    "report": ("report trace.nsys-rep -o report.html", "report trace.nsys-rep --template agent -o report.md"),
    "capture": ("capture -- python3 train.py", "capture --delay 20s --duration 5s -- ./decode --tokens 128"),
    "demo": ("demo",),
    "diff": (
        "diff before.nsys-rep after.nsys-rep",
        "diff --before a1.sqlite a2.sqlite --after b1.sqlite b2.sqlite",
    ),
    "check": (
        "check trace.nsys-rep --max wall=2.5ms --min gpu_busy_pct=90",
        "check trace.nsys-rep --baseline main --junit check.xml",
    ),
    "baseline": ("baseline save trace.nsys-rep --name main", "baseline list"),
    "baseline save": (
        "baseline save trace.nsys-rep --name main",
        "baseline save trace.nsys-rep --steady -o before.json",
    ),
    "baseline list": ("baseline list", "baseline list --tag release --format json"),
    "baseline show": ("baseline show main", "baseline show main --format json"),
    "baseline rm": ("baseline rm main",),
    "bench": (
        "bench -- python3 decode.py --tokens 128",
        "bench --before 'python3 old.py' --after 'python3 new.py' --least 20",
    ),
    "experiment": ("experiment start --bench 'python3 decode.py'", "experiment try 'fused the norms' --because fusion"),
    "experiment start": (
        "experiment start --bench 'python3 decode.py'",
        "experiment start --bench ./decode --test 'pytest -q' --goal 'decode under 2 ms'",
    ),
    "experiment try": (
        "experiment try 'fused the norms'",
        "experiment try 'fused the norms' --because fusion --trace after.nsys-rep",
    ),
    "experiment keep": ("experiment keep", "experiment keep --folder tuning"),
    "experiment revert": ("experiment revert", "experiment revert --folder tuning"),
    "experiment log": ("experiment log", "experiment log --format markdown"),
    "sql": (
        'sql trace.nsys-rep "SELECT name, count(*) FROM kernels GROUP BY ALL"',
        "sql trace.nsys-rep --file query.sql --format csv -o rows.csv",
    ),
    "shell": ("shell trace.nsys-rep", "shell trace.nsys-rep --nvtx decode_step"),
    "explore": ("explore trace.nsys-rep", "explore run.sqlite"),
    "run": ("run ./mine.sql trace.nsys-rep", "run ./mine.sql trace.nsys-rep --steady --format json"),
    "packs": ("packs", "packs new hot-norms"),
    "packs show": ("packs show top", "packs show ./mine.sql"),
    "packs new": ("packs new hot-norms", "packs new hot-norms -o ./hot-norms.sql"),
    "packs check": ("packs check ./mine.sql", "packs check hot-norms"),
    "schema": ("schema kernels", "schema --json top"),
    "ncu": ("ncu plan trace.nsys-rep --top 2", "ncu report kernels.ncu-rep --trace trace.nsys-rep"),
    "ncu plan": ("ncu plan trace.nsys-rep --top 2", "ncu plan trace.nsys-rep --kernel softmax --command-only"),
    "ncu analyze": ("ncu analyze trace.nsys-rep -- python3 decode.py", "ncu analyze trace.nsys-rep --kernel softmax"),
    "ncu import": ("ncu import kernels.ncu-rep", "ncu import raw.csv details.csv -o decode.ncu.duckdb"),
    "ncu report": ("ncu report kernels.ncu-rep", "ncu report kernels.ncu-rep --trace trace.nsys-rep -o ncu.md"),
    "ncu diff": ("ncu diff before.ncu-rep after.ncu-rep", "ncu diff before.csv after.csv --kernel softmax"),
    "ncu roofline": ("ncu roofline kernels.ncu-rep", "ncu roofline kernels.ncu-rep -o roofline.svg"),
    "sass": ("sass decode.cubin --kernel softmax", "sass source.csv --by class"),
    "ptxas": ("ptxas build.log", "ptxas build.log --trace trace.nsys-rep"),
    "skill": ("skill install", "skill install .claude/skills"),
    "skill install": ("skill install", "skill install .claude/skills"),
    "mcp": ("mcp trace.nsys-rep", "mcp traces/ --timeout 30s"),
    "convert": ("convert trace.nsys-rep -o trace.duckdb", "convert trace.nsys-rep --as perfetto -o timeline.pftrace"),
    "fleet": ("fleet traces/ -o facts/", "fleet 'run/*/rank*.nsys-rep' -o facts/ --workers 4"),
    "scrub": ("scrub trace.nsys-rep -o shared.sqlite", "scrub trace.nsys-rep -o shared.sqlite --names --shift-times"),
    "export": ("export trace.nsys-rep", "export trace.nsys-rep -o /tmp/trace.sqlite --force"),
    "cache": ("cache", "cache clear --older-than 7d"),
    "cache clear": ("cache clear", "cache clear --older-than 7d"),
}


def examples_of(pack: Pack) -> tuple[str, ...]:
    """The examples of a report, whole: its name, a trace, and what its header gives; flags that need no trace alone."""
    given = pack.examples or ("",)
    return tuple(
        f"{pack.name} {each}" if _has_input(each) else f"{pack.name} {_TRACE} {each}".strip() for each in given
    )


def epilog(examples: tuple[str, ...]) -> str:
    """What stands at the end of a command's help."""
    return "\n\n".join(["Examples:", *(f"$ nsys-insight {each}" for each in examples)]) if examples else ""


def _has_input(arguments: str) -> bool:
    """Whether an example names its traces itself, or asks without one: of an architecture of the catalog."""
    return arguments.startswith(("'", "run/")) or "--arch" in arguments
