"""`-o` writes the complete file or nothing, and never over an input."""

from __future__ import annotations

import json
import os
import resource
import shlex
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


def run_command(*command):
    return run(*command, cwd=REPOSITORY)


def read_folder(folder):
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
    ("name", "target_name"),
    [
        *((name, "t.sqlite") for name in WRITE),
        *(("top", to) for to in OTHER_NAMES),
        *sweep((name, to) for name in WRITE if name != "top" for to in OTHER_NAMES),
    ],
)
def test_an_output_never_overwrites_its_input(trace, name, target_name):
    folder = trace.parent
    (folder / "link.sqlite").symlink_to(trace)
    (folder / "hard.sqlite").hardlink_to(trace)
    before = read_folder(folder)
    result = run_command(*(trace if word == "TRACE" else word for word in WRITE[name]), "-o", folder / target_name)
    assert (result.returncode, read_folder(folder)) == (2, before), result.stderr
    assert "name another file with -o" in result.stderr


@pytest.mark.parametrize("suffix", [".duckdb", ".pftrace"])
def test_a_conversion_never_overwrites_its_input(trace, suffix):
    link = trace.with_suffix(suffix)
    link.symlink_to(trace)
    before = read_folder(trace.parent)
    result = run_command("convert", trace, "--force", "-o", link)
    assert (result.returncode, read_folder(trace.parent)) == (2, before), result.stderr


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
def test_an_output_never_overwrites_an_input_that_is_not_a_trace(trace, tmp_path, command):
    input_file = tmp_path / ("in.json" if {"diff", "--baseline"} & set(command) else "in.csv")
    if input_file.suffix == ".json":
        run_command("baseline", "save", trace, "-o", input_file)
    elif "--budget" in command:
        input_file.write_text("[max]\nwall = '1s'\n")
    else:
        shutil.copy(NCU, input_file)
    before = read_folder(tmp_path)
    result = run_command(*({"TRACE": trace, "IN": input_file}.get(word, word) for word in command), "-o", input_file)
    assert (result.returncode, read_folder(tmp_path)) == (2, before), result.stderr


@pytest.mark.slow
def test_nothing_is_written_into_a_trace_that_is_a_folder(sample, tmp_path):
    folder = tmp_path / "folder"
    run_command("convert", sample("churn"), "-o", folder)
    before = read_folder(folder)
    result = run_command("top", folder, "-o", folder / "raw" / "StringIds.parquet")
    assert (result.returncode, read_folder(folder)) == (2, before)


@pytest.mark.slow
def test_files_of_other_programs_are_not_replaced(trace, tmp_path):
    """No manifest and no record has them, so their kinds and names do not matter."""
    for name, content_before in (
        ("results.csv", b"mine,1\n"), ("notes.md", b"# Notes\n"), ("results.json", b"{}\n"), ("log.txt", b"mine\n"),
        ("other.sqlite", trace.read_bytes()), ("a.csv", b"\0\1\2"), ("train.py", b"import torch\n"),
        ("b.json", b"PAR1"), ("c.txt", b"\x89PNG\r\n"),
    ):  # fmt: skip
        path = tmp_path / name
        path.write_bytes(content_before)
        result = run_command("top", trace, "--format", "json", "-o", path)
        assert (result.returncode, path.read_bytes()) == (2, content_before)
        assert json.loads(result.stderr.splitlines()[-1])["error"]["hint"]
    answer = tmp_path / "answer.json"
    assert [run_command("top", trace, "-o", answer).returncode for _ in range(2)] == [0, 0], (
        "an answer replaces an answer"
    )


def test_ncu_import_replaces_other_files_only_with_force(tmp_path):
    target = tmp_path / "precious.txt"
    target.write_text("precious")
    result = run_command("ncu", "import", NCU, "-o", target)
    assert (result.returncode, target.read_text()) == (2, "precious")
    assert run_command("ncu", "import", NCU, "-o", target, "--force").returncode == 0
    assert target.read_bytes()[8:12] == b"DUCK"
    assert run_command("ncu", "import", NCU, "-o", target).returncode == 0, "its own file"


def test_a_name_that_no_file_can_have_is_a_usage_error(trace, tmp_path):
    name = tmp_path / f"{'n' * 300}.csv"
    for command in (["top", trace, "-o", name], ["convert", trace, "-o", name.with_suffix(".sqlite")]):
        result = run_command(*command)
        assert (result.returncode, "File name too long" in result.stderr) == (2, True), result.stderr


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link, real = tmp_path / "link.json", tmp_path / "elsewhere" / "real.json"
    link.symlink_to(real)
    for text in ("{}", "{1}"):
        outputs.write_output(link, text)
        assert (link.is_symlink(), real.read_text()) == (True, text)
    assert read_folder(tmp_path / "elsewhere").keys() == {"real.json"}


@pytest.mark.parametrize("command", [["convert", "--as", "sqlite"], ["scrub"], ["export"]])
def test_a_name_that_the_user_did_not_choose_leads_nowhere_else(trace, tmp_path, command):
    """A folder from somebody else may have a link where the output goes: to nothing, which the output would create."""
    (report := tmp_path / "t.nsys-rep").write_bytes(b"NVIDIA Tegra Profiler Report")
    for name in ("t_part.sqlite", "t.scrubbed.sqlite"):
        (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    if command == ["export"]:
        trace.unlink()
        trace.symlink_to(tmp_path / "elsewhere")
    result = run(*command, report if command == ["export"] else trace, cwd=tmp_path)
    assert (result.returncode, "exists already" in result.stderr) == (2, True), result.stderr
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    "command", [["top", "TRACE", "--format", "parquet"], ["ncu", "import", NCU], ["baseline", "save", "TRACE"]]
)
def test_a_pipe_stays_a_pipe_and_gets_the_complete_output(trace, tmp_path, command):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    chunks = []
    reader = threading.Thread(target=lambda: chunks.append(pipe.read_bytes()))
    reader.start()
    result = run_command(*(trace if word == "TRACE" else word for word in command), "-o", pipe)
    reader.join(30)
    assert result.returncode == 0, result.stderr
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert len(chunks[0]) > 100


@pytest.mark.slow
@pytest.mark.parametrize("command", ["convert --as sqlite", "convert --as duckdb", "convert --as perfetto", "scrub"])
def test_a_pipe_without_a_reader_is_not_waited_for(trace, tmp_path, command):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    arguments = [*PROCESS, *command.split(), str(trace), "-o", str(pipe), "--force"]
    result = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, f"{pipe} is not a regular file" in result.stderr) == (2, True), result.stderr
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_is_not_overwritten(tmp_path):
    (tmp_path / "link").symlink_to("/dev/null")
    for target in (Path("/dev/null"), tmp_path / "link"):
        with pytest.raises(UsageError, match="is not a regular file"):
            outputs.refuse_existing(target, force=True)
    outputs.refuse_existing(tmp_path, force=True)
    outputs.refuse_existing(tmp_path / "new", force=False)


@pytest.mark.slow
def test_a_device_stays_a_device(trace):
    for command in (["top", trace, "--format", "json"], ["ncu", "import", NCU], ["top", trace, "--format", "parquet"]):
        assert run_command(*command, "-o", "/dev/null").returncode == 0
        assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    result = run_command("top", trace, "--format", "json", "-o", "/dev/full")
    error = json.loads(result.stderr.splitlines()[-1])["error"]
    assert (result.returncode, error["message"]) == (2, "cannot write /dev/full: No space left on device")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sql", "top parquet", "diagnose", "baseline"])
def test_on_a_full_disk_no_file_is_left_and_there_is_no_traceback(trace, tmp_path, name):
    def limit_file_size():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    existing_file = tmp_path / "out.json"
    existing_file.write_text("{}")
    before = read_folder(tmp_path)
    target = existing_file if name == "baseline" else tmp_path / "out"
    words = [str(trace) if word == "TRACE" else word for word in WRITE[name]]
    # Python would leave truncated bytecode.
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    result = subprocess.run(
        [*PROCESS, *words, "-o", target], cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False,
        preexec_fn=limit_file_size,
    )  # fmt: skip
    assert result.returncode in (1, 2), result.stderr
    assert read_folder(tmp_path) == before
    assert "Traceback" not in result.stderr


def test_a_file_keeps_its_permissions_and_a_new_one_has_the_default(tmp_path):
    path = tmp_path / "a.md"
    outputs.write_output(path, "new")
    (tmp_path / "b.md").touch()
    assert path.stat().st_mode == (tmp_path / "b.md").stat().st_mode
    path.chmod(0o600)
    outputs.write_output(path, "again")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_folder_as_output_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="Is a directory"):
        outputs.write_output(tmp_path, "x")
    assert read_folder(tmp_path) == {}


class TestReplacement:
    """A file is replaced only if its content is what this program wrote there."""

    def write_twice(self, path, change=lambda _: None):
        outputs.write_output(path, "first")
        change(path)
        outputs.write_output(path, "second")

    def test_an_output_replaces_an_output(self, tmp_path):
        self.write_twice(tmp_path / "x.csv")
        assert (tmp_path / "x.csv").read_text() == "second"

    @pytest.mark.parametrize("content", ["first\nand mine", "mine"])
    def test_a_changed_output_stays(self, tmp_path, content):
        with pytest.raises(UsageError, match="did not write it, or it was changed since"):
            self.write_twice(tmp_path / "x.csv", lambda path: path.write_text(content))
        assert (tmp_path / "x.csv").read_text() == content
        assert list(tmp_path.iterdir()) == [tmp_path / "x.csv"]

    def test_an_empty_file_holds_nothing(self, tmp_path):
        self.write_twice(tmp_path / "x.csv", lambda path: path.write_text(""))
        assert (tmp_path / "x.csv").read_text() == "second"

    def test_without_a_cache_there_is_no_proof(self, tmp_path, monkeypatch):
        monkeypatch.setenv("NSYS_INSIGHT_CACHE_DIR", "/dev/null/none")
        with pytest.raises(UsageError, match="exists already"):
            self.write_twice(tmp_path / "x.csv")
        outputs.write_output(tmp_path / "x.csv", "third", force=True)
        assert (tmp_path / "x.csv").read_text() == "third"


def test_files_with_the_name_of_a_temporary_one_stay(tmp_path):
    names = [".nsys-insight-x-abcd1234.csv", ".nsys-insight-1-ab/thesis.tex", "nsys-insight-main/thesis.tex"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
        for path in (tmp_path / name, (tmp_path / name).parent):
            os.utime(path, (0, 0))
    with outputs.open_output(tmp_path / "x.csv") as temporary_file:
        temporary_file.write_text("whole")
    assert (tmp_path / "x.csv").read_text() == "whole"
    assert [(tmp_path / name).read_text() for name in names] == ["mine"] * 3


unix_only = pytest.mark.skipif(os.name == "nt", reason="there are no such names of open files")


def run_shell(script, cwd):
    """Run a script of the shell, in which $RUN is the command and $TOP the report on the trace."""
    script = script.replace("$TOP", "$RUN top t.sqlite").replace("$RUN", shlex.join(PROCESS))
    return subprocess.run(["sh", "-c", script], cwd=cwd, capture_output=True, check=False)


@unix_only
class TestOpenFiles:
    """Names of open files (/dev/stdout, /dev/fd/3) are written to, never replaced."""

    @pytest.mark.parametrize("format_name", ["parquet", *sweep(["csv", "table", "markdown", "json", "jsonl", "arrow"])])
    def test_every_format_is_written_into_a_pipe(self, trace, format_name):
        result = run_shell(f"$TOP --format {format_name} -o /dev/stdout | cat", trace.parent)
        run("top", "t.sqlite", "--format", format_name, "-o", "file", cwd=trace.parent)
        assert result.stdout == (trace.parent / "file").read_bytes(), result.stderr

    @pytest.mark.parametrize("redirection", ["-o /dev/fd/3 3>&1 | cat", "-o link | cat"])
    def test_other_open_files_are_pipes_too(self, trace, redirection):
        (trace.parent / "link").symlink_to("/dev/stdout")
        lines = run_shell(f"$TOP --format csv {redirection}", trace.parent).stdout.splitlines()
        assert lines[0].startswith(b"name,calls,")
        assert (trace.parent / "link").is_symlink()

    def test_a_file_that_stdout_appends_to_keeps_what_is_in_it(self, trace):
        log = trace.parent / "log.csv"
        log.write_text("before\n")
        inode = log.stat().st_ino
        run_shell("$TOP --format csv -o /dev/stdout >> log.csv", trace.parent)
        assert log.read_text().startswith("before\nname,calls,")
        assert log.stat().st_ino == inode

    @pytest.mark.parametrize(
        ("script", "message"),
        [
            ("$TOP --format csv -o /dev/fd/77", "cannot write /dev/fd/77: No such file or directory"),
            ("$TOP --format csv -o /dev/stdout >> t.sqlite", "/dev/stdout is the trace itself"),
        ],
    )
    def test_what_cannot_be_written_is_one_sentence(self, trace, script, message):
        result = run_shell(script, trace.parent)
        assert result.returncode == 2
        assert message in result.stderr.decode()
        assert "hint: " in result.stderr.decode()

    def test_a_conversion_into_a_pipe_is_refused_in_one_sentence(self, trace):
        result = run_shell("$RUN convert t.sqlite -o /dev/stdout --as parquet | cat", trace.parent)
        assert result.stderr.decode().startswith("error: /dev/stdout is not a regular file\nhint: ")
