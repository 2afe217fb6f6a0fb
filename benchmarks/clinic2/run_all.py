# ruff: noqa: ANN001, ANN201, BLE001, E401, F401, FBT002, FBT003, FURB167, I001, PLW1510, S108
# mypy: ignore-errors
"""Time and capture the programs of corpus.toml: run_all.py OUT NSYS DEADLINE [NAME or NAME_VARIANT ...]."""

import json, lzma, os, re, shutil, sqlite3, subprocess, sys, tarfile, time, tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

OUT, NSYS, DEADLINE, NAMES = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), set(sys.argv[4:])
APP, START, LOCK = Path("/srv/app"), time.monotonic(), Lock()
PRIVATE = 'echo node > /proc/sys/kernel/hostname; mkdir -p /tmp/nvidia && mount -t tmpfs none /tmp/nvidia && exec "$@"'
NS = ["unshare", "-fpmu", "--mount-proc", "--kill-child", "sh", "-c", PRIVATE, "sh"]


def say(text):
    with LOCK, (OUT / "results.txt").open("a") as f:
        f.write(f"[{time.monotonic() - START:5.1f}] {text}\n")
    print(text[:400], flush=True)


def env(libs=False):
    path = os.environ.get("LD_LIBRARY_PATH", "")
    return {
        "HOME": "/tmp/home",
        "USER": "user",
        "LANG": "C.UTF-8",
        "PATH": os.environ["PATH"],
        "LD_LIBRARY_PATH": ":".join(x for x in [path, "/srv/lib" if libs else ""] if x),
        "TURN_FILE": "/srv/app/turn",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "NCCL_NVLS_ENABLE": "0",
        "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
    }


def execute(label, command, libs=False, limit=100):
    if time.monotonic() - START > DEADLINE:
        say(f"FAIL {label}: no time left")
        return None
    try:
        r = subprocess.run(
            [*NS, *command], cwd=APP, env=env(libs), capture_output=True, text=True, errors="replace", timeout=limit
        )
    except subprocess.TimeoutExpired:
        say(f"FAIL {label}: timed out")
        return None
    if r.returncode:
        say(f"FAIL {label}: exit {r.returncode}\n{r.stdout[-600:]}\n{r.stderr[-1500:]}")
        return None
    return r.stdout


def compress(db):
    if shutil.which("xz"):
        subprocess.run(["xz", "-6", "-k", "-f", str(db)], check=True)
        return
    with db.open("rb") as a, lzma.open(f"{db}.xz", "wb", preset=6) as b:
        shutil.copyfileobj(a, b)


def work(job):
    pair, variant = job
    try:
        handle(pair, variant)
    except Exception as error:
        say(f"FAIL {pair['name']}_{variant}: {error!r}")


def handle(pair, variant):
    name, program = f"{pair['name']}_{variant}", Path(pair["program"])
    command = (["python3", program.name] if program.suffix == ".py" else [str(APP / program.stem)]) + [variant]
    begin = time.monotonic()
    out = execute(name, command)
    if out is None:
        return
    results = re.findall(r'^\{"ms_per_step".*\}$', out, re.M)
    say(f"TIME {name} {results[-1] if results else 'no result ' + out[-300:]} wall {time.monotonic() - begin:.1f}")
    begin = time.monotonic()
    report, db = APP / "reports" / f"{name}.nsys-rep", APP / "reports" / f"{name}.sqlite"
    profile = [
        NSYS,
        "profile",
        "-t",
        "cuda,nvtx",
        "-s",
        "none",
        "--cpuctxsw=none",
        "--capture-range=cudaProfilerApi",
        "--capture-range-end=stop",
        "-f",
        "true",
        "-o",
        f"/srv/app/reports/{name}",
    ]
    out = execute(f"trace {name}", [*profile, *command, "--profile", str(pair["steps"])], True)
    if not report.exists():
        say(f"FAIL trace {name}: no report {(out or '')[-1200:]}")
        return
    if (
        execute(
            f"export {name}",
            [NSYS, "export", "--type", "sqlite", "--include-blobs=true", "-f", "true", "-o", str(db), str(report)],
            True,
        )
        is None
    ):
        return
    with sqlite3.connect(db) as c:
        if not c.execute("SELECT 1 FROM sqlite_master WHERE name LIKE 'CUPTI%RUNTIME'").fetchall():
            say(f"FAIL trace {name}: no CUDA events")
            return
    compress(db)
    say(f"TRACE {name} {Path(f'{db}.xz').stat().st_size >> 10} KB wall {time.monotonic() - begin:.1f}")


say(
    subprocess.run(
        ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True
    ).stdout.strip()
)
Path("/tmp/home").mkdir(exist_ok=True)
(APP / "reports").mkdir(exist_ok=True)
jobs = [
    (p, v)
    for p in tomllib.loads(Path("corpus.toml").read_text())["pair"]
    for v in ("ailing", "cured")
    if (v == "ailing" or "cure" in p) and (not NAMES or {p["name"], f"{p['name']}_{v}"} & NAMES)
]
with ThreadPoolExecutor(6) as pool:
    list(pool.map(work, jobs))
groups = [[]]
for path in sorted((APP / "reports").glob("*.sqlite.xz")):
    if path.stat().st_size > 15 << 20:
        say(f"FAIL too large {path.name}")
        continue
    if sum(p.stat().st_size for p in [*groups[-1], path]) > 15 << 20:
        groups.append([])
    groups[-1].append(path)
for i, group in enumerate(groups[:7]):
    with tarfile.open(OUT / f"traces_{i}.tar", "w") as t:
        for path in group:
            t.add(path, path.name)
say("done")
