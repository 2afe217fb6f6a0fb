"""`-o` writes where it says and the whole of it, or nothing anywhere; never over what was read."""

from __future__ import annotations

import json
import os
import resource
import shutil
import stat
import subprocess
import threading
from pathlib import Path

import pytest
from command_line import PROCESS, run
from sweeps import sweep

from nsys_insight import outputs
from nsys_insight.errors import UsageError

REPOSITORY = Path(__file__).parents[1]
NCU = REPOSITORY / "tests/data/ncu/zoo_a.ncu.raw.csv"


def ran(*command):
    return run(*command, cwd=REPOSITORY)


def content(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def trace(sample, tmp_path):
    return Path(shutil.copy(sample("churn"), tmp_path / "t.sqlite"))


WRITE = {
    "top": ["top", "TRACE", "--format", "json"],
    "top parquet": ["top", "TRACE", "--format", "parquet"],
    "sql": ["sql", "TRACE", "FROM kernels", "--format", "csv"],
    "diagnose": ["diagnose", "TRACE", "--format", "table"],
    "diagnose json": ["diagnose", "TRACE", "--format", "json"],
    "diff": ["diff", "TRACE", "TRACE", "--format", "table"],
    "check": ["check", "TRACE", "--max", "wall=1s", "--format", "json"],
    "baseline": ["baseline", "save", "TRACE"],
    "ncu report": ["ncu", "report", NCU, "--trace", "TRACE", "--format", "json"],
}


OTHER_NAMES = ("link.sqlite", "hard.sqlite", "t.sqlite-wal")


@pytest.mark.parametrize(
    ("name", "to"),
    [
        *((name, "t.sqlite") for name in WRITE),
        *(("top", to) for to in OTHER_NAMES),
        *sweep((name, to) for name in WRITE if name != "top" for to in OTHER_NAMES),
    ],
)
def test_no_output_goes_over_an_input(trace, name, to):
    folder = trace.parent
    (folder / "link.sqlite").symlink_to(trace)
    (folder / "hard.sqlite").hardlink_to(trace)
    before = content(folder)
    done = ran(*(trace if word == "TRACE" else word for word in WRITE[name]), "-o", folder / to)
    assert (done.returncode, content(folder)) == (2, before), done.stderr
    assert "name another file with -o" in done.stderr


@pytest.mark.parametrize("suffix", [".duckdb", ".pftrace"])
def test_nor_does_a_conversion(trace, suffix):
    link = trace.with_suffix(suffix)
    link.symlink_to(trace)
    before = content(trace.parent)
    done = ran("convert", trace, "--force", "-o", link)
    assert (done.returncode, content(trace.parent)) == (2, before), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["ncu", "import", "IN", "--force"],
        ["ncu", "report", "IN", "--format", "json"],
        ["diff", "--format", "json", "IN", "IN"],
        ["check", "TRACE", "--baseline", "IN", "--format", "json"],
        ["check", "TRACE", "--budget", "IN", "--format", "json"],
        ["top", "TRACE", "--ncu", "IN", "--format", "json"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_nor_over_what_is_no_trace(trace, tmp_path, command):
    given = tmp_path / ("in.json" if {"diff", "--baseline"} & set(command) else "in.csv")
    if given.suffix == ".json":
        ran("baseline", "save", trace, "-o", given)
    elif "--budget" in command:
        given.write_text("[max]\nwall = '1s'\n")
    else:
        shutil.copy(NCU, given)
    before = content(tmp_path)
    done = ran(*({"TRACE": trace, "IN": given}.get(word, word) for word in command), "-o", given)
    assert (done.returncode, content(tmp_path)) == (2, before), done.stderr


@pytest.mark.slow
def test_nothing_is_written_into_a_trace_that_is_a_folder(sample, tmp_path):
    folder = tmp_path / "folder"
    ran("convert", sample("churn"), "-o", folder)
    before = content(folder)
    done = ran("top", folder, "-o", folder / "raw" / "StringIds.parquet")
    assert (done.returncode, content(folder)) == (2, before)


@pytest.mark.slow
def test_what_something_else_made_is_not_replaced(trace, tmp_path):
    """A file of another kind than what is written: another trace, a program, a picture."""
    for name, there in (
        ("other.sqlite", trace.read_bytes()), ("a.csv", b"\0\1\2"), ("train.py", b"import torch\n"),
        ("b.json", b"PAR1"), ("c.txt", b"\x89PNG\r\n"),
    ):  # fmt: skip
        path = tmp_path / name
        path.write_bytes(there)
        done = ran("top", trace, "--format", "json", "-o", path)
        assert (done.returncode, path.read_bytes()) == (2, there)
        assert json.loads(done.stderr.splitlines()[-1])["error"]["hint"]
    answer = tmp_path / "answer.json"
    assert [ran("top", trace, "-o", answer).returncode for _ in range(2)] == [0, 0], "an answer replaces an answer"


def test_ncu_import_asks_before_it_replaces(tmp_path):
    target = tmp_path / "precious.txt"
    target.write_text("precious")
    done = ran("ncu", "import", NCU, "-o", target)
    assert (done.returncode, target.read_text()) == (2, "precious")
    assert ran("ncu", "import", NCU, "-o", target, "--force").returncode == 0
    assert target.read_bytes()[8:12] == b"DUCK"
    assert ran("ncu", "import", NCU, "-o", target).returncode == 0, "its own file"


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link, real = tmp_path / "link.json", tmp_path / "elsewhere" / "real.json"
    link.symlink_to(real)
    for text in ("{}", "{1}"):
        outputs.save(link, text)
        assert (link.is_symlink(), real.read_text()) == (True, text)
    assert content(tmp_path / "elsewhere").keys() == {"real.json"}


@pytest.mark.parametrize(
    "command", [["top", "TRACE", "--format", "parquet"], ["ncu", "import", NCU], ["baseline", "save", "TRACE"]]
)
def test_a_pipe_stays_a_pipe_and_gets_all(trace, tmp_path, command):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    done = ran(*(trace if word == "TRACE" else word for word in command), "-o", pipe)
    reader.join(30)
    assert done.returncode == 0, done.stderr
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert len(got[0]) > 100


@pytest.mark.slow
def test_a_device_stays_a_device(trace):
    for command in (["top", trace, "--format", "json"], ["ncu", "import", NCU], ["top", trace, "--format", "parquet"]):
        assert ran(*command, "-o", "/dev/null").returncode == 0
        assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    done = ran("top", trace, "--format", "json", "-o", "/dev/full")
    said = json.loads(done.stderr.splitlines()[-1])["error"]
    assert (done.returncode, said["message"]) == (2, "cannot write /dev/full: No space left on device")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sql", "top parquet", "diagnose", "baseline"])
def test_where_the_disk_is_full_nothing_is_left_and_one_sentence_says_so(trace, tmp_path, name):
    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    there = tmp_path / "out.json"
    there.write_text("{}")
    before = content(tmp_path)
    target = there if name == "baseline" else tmp_path / "out"
    words = [str(trace) if word == "TRACE" else word for word in WRITE[name]]
    # Python would leave bytecode that is cut off.
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*PROCESS, *words, "-o", target], cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False,
        preexec_fn=small,
    )  # fmt: skip
    assert done.returncode in (1, 2), done.stderr
    assert content(tmp_path) == before
    assert "Traceback" not in done.stderr


def test_a_file_keeps_its_rights_and_a_new_one_has_those_of_any_other(tmp_path):
    path = tmp_path / "a.md"
    outputs.save(path, "new")
    (tmp_path / "b.md").touch()
    assert path.stat().st_mode == (tmp_path / "b.md").stat().st_mode
    path.chmod(0o600)
    outputs.save(path, "again")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(UsageError, match="Is a directory"):
        outputs.save(tmp_path, "x")
    assert content(tmp_path) == {}


def test_what_a_killed_process_left_beside_a_file_goes_with_the_next_that_writes_it(tmp_path):
    left, fresh, other = (tmp_path / f".nsys-insight-{name}.csv" for name in ("x-abcd1234", "x-abcd5678", "y-abcd1234"))
    thesis = tmp_path / ".nsys-insight-x-thesis-final.csv"
    for path in (left, fresh, other, thesis):
        path.write_text("half")
        os.utime(path, (0, 0))
    fresh.touch()
    with outputs.whole(tmp_path / "x.csv") as made:
        made.write_text("whole")
    assert not left.exists()
    assert fresh.exists()
    assert other.exists()
    assert thesis.exists()
    assert (tmp_path / "x.csv").read_text() == "whole"
