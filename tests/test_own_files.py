"""Only files that a list of the program's own has are removed or replaced; everything else stays."""

from __future__ import annotations

import ast
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import PROCESS, run
from conversions import without_most_facts

import nsys_insight
from nsys_insight import cache_folder, outputs, own_files
from nsys_insight.errors import UsageError

PACKAGE = Path(nsys_insight.__file__).parent
# Calls that remove, rename or replace a file, or make a temporary one that somebody removes later.
REMOVALS = {
    "unlink", "rmdir", "rmtree", "removedirs", "rename", "renames", "move", "truncate", "copytree",
    "TemporaryDirectory", "NamedTemporaryFile", "mkdtemp", "mkstemp",
}  # fmt: skip


def list_removals(path):
    """Return the removing calls of a module: by name, and `replace` or `remove` with arguments that paths take."""
    calls = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
            # `text.replace(a, b)` and `dataclasses.replace(x, y=1)` are not about files.
            is_path_replace = name == "replace" and owner and len(node.args) == 1 and not node.keywords
            if name in REMOVALS or is_path_replace or (name in ("remove", "replace") and owner == "os"):
                calls.add(f"{owner}.{name}" if owner else name)
    return calls


def test_one_module_removes_files():
    removals = {
        path.relative_to(PACKAGE).as_posix(): calls
        for path in sorted(PACKAGE.rglob("*.py"))
        if (calls := list_removals(path))
    }
    assert set(removals) == {"own_files.py"}, removals


def read_tree(folder):
    """Return the content of every file, and every folder and link, below a folder."""
    tree = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            tree[name] = path.readlink()
        else:
            tree[name] = path.read_bytes() if path.is_file() else None
    return tree


def write_files(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"mine: {name}\n")
        os.utime(folder / name, (0, 0))
    for path in sorted(folder.rglob("*"), reverse=True):
        os.utime(path, (0, 0))


class TestOwnFolder:
    def test_listed_files_are_removed_with_the_side_files_of_databases(self, tmp_path):
        folder = own_files.make_folder(tmp_path, "nsys-insight-")
        own_files.claim(folder.claim("a.duckdb"), folder.path / "b.sqlite")
        folder.claim_pattern("spill-*/duckdb_temp_*")
        for name in ("a.duckdb", "a.duckdb.wal", "b.sqlite", "b.sqlite-journal"):
            (folder.path / name).touch()
        for name in ("spill-1", "a.duckdb.tmp"):
            (folder.path / name).mkdir()
            (folder.path / name / "duckdb_temp_storage-0.tmp").touch()
        own_files.make_subfolder(folder.path / "empty")
        folder.close()
        assert not folder.path.exists()

    @pytest.mark.parametrize("name", ["thesis.tex", "data/thesis.tex", "spill-1/thesis.tex", "a.duckdb.bak", "empty/"])
    def test_a_file_that_is_not_listed_keeps_all(self, tmp_path, name):
        folder = own_files.make_folder(tmp_path, "nsys-insight-")
        folder.claim_pattern("spill-*/duckdb_temp_*")
        folder.claim("a.duckdb").touch()
        (folder.path / name).parent.mkdir(exist_ok=True)
        (folder.path / name).mkdir() if name.endswith("/") else (folder.path / name).touch()
        folder.close()
        assert (folder.path / name).exists()
        assert (folder.path / "a.duckdb").exists()
        own_files.foreign_files.clear()
        own_files.remove_abandoned(tmp_path, "nsys-insight-")
        assert list(own_files.foreign_files) == [folder.path]
        own_files.foreign_files.clear()

    def test_a_copy_and_a_renamed_folder_are_not_temporary(self, tmp_path):
        folder = own_files.make_folder(tmp_path, "nsys-insight-")
        folder.claim("a").touch()
        folder._stream.close()
        shutil.copytree(folder.path, tmp_path / "copies" / folder.path.name)
        shutil.copytree(folder.path, tmp_path / "nsys-insight-copy")
        (tmp_path / "nsys-insight-copy").joinpath("a").write_text("mine")
        own_files.remove_abandoned(tmp_path / "copies", "nsys-insight-")
        own_files.remove_abandoned(tmp_path, "nsys-insight-")
        assert not folder.path.exists()
        assert (tmp_path / "copies" / folder.path.name / "a").exists()
        assert (tmp_path / "nsys-insight-copy" / "a").read_text() == "mine"
        assert not own_files.foreign_files

    def test_a_cache_and_an_output_among_temporary_files_are_not_temporary(self, tmp_path):
        for name in ("nsys-insight-cache", "nsys-insight-out"):
            (tmp_path / name).mkdir()
            own_files.adopt(tmp_path / name)
            own_files.claim(tmp_path / name / "kernels.parquet")
            (tmp_path / name / "kernels.parquet").write_text("rows")
        own_files.remove_abandoned(tmp_path, "nsys-insight-")
        assert {path.name for path in tmp_path.glob("*/*.parquet")} == {"kernels.parquet"}
        assert len(list(tmp_path.iterdir())) == 2
        assert not own_files.foreign_files

    def test_a_temporary_folder_inside_another_is_removed_with_it(self, tmp_path):
        outer = own_files.make_folder(tmp_path, "nsys-insight-")
        inner = own_files.make_folder(outer.path, ".nsys-insight-")
        inner.claim("a").touch()
        inner._stream.close()
        (outer.path / "data").mkdir()
        own_files.adopt(outer.path / "data")  # an output of several files is not temporary
        outer.close()
        assert list(own_files.foreign_files.values()) == ["data"]
        shutil.rmtree(outer.path / "data")
        own_files.foreign_files.clear()
        own_files.remove_abandoned(tmp_path, "nsys-insight-")
        assert not outer.path.exists()
        assert not own_files.foreign_files

    def test_a_folder_in_use_stays(self, tmp_path):
        folder = own_files.make_folder(tmp_path, "nsys-insight-")
        own_files.remove_abandoned(tmp_path, "nsys-insight-")
        assert folder.path.is_dir()
        folder.close()

    @pytest.mark.parametrize(
        "line", ["../thesis.tex", "/thesis.tex", "a/../../thesis.tex", ["../*"], ["/*"], ["*"], 1, None, {"a": 1}]
    )
    def test_a_forged_name_leads_nowhere_else(self, tmp_path, line):
        (tmp_path / "thesis.tex").touch()
        folder = own_files.make_folder(tmp_path, "nsys-insight-")
        (folder.path / "link").symlink_to(tmp_path)
        with (folder.path / own_files.MARKER).open("a") as stream:
            stream.write(json.dumps(line) + "\n" + json.dumps("link") + "\n" + '"cut in the mid')
        folder.close()
        assert (tmp_path / "thesis.tex").exists()
        assert not folder.path.exists()

    @pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b'{"program": "nsys-insight files/1"}', None])
    def test_a_file_that_is_not_a_manifest_proves_nothing(self, tmp_path, content):
        folder = tmp_path / "nsys-insight-x"
        folder.mkdir()
        if content is None:
            (folder / own_files.MARKER).mkdir()
        else:
            (folder / own_files.MARKER).write_bytes(content)
        (folder / "a").touch()
        own_files.remove_abandoned(tmp_path, "nsys-insight-")
        assert own_files.remove(folder) == [folder]
        assert (folder / "a").exists()


class TestClaim:
    def test_a_file_that_is_there_cannot_be_claimed(self, tmp_path):
        (tmp_path / "a").write_text("mine")
        own_files.adopt(tmp_path)
        with pytest.raises(FileExistsError, match="nsys-insight did not write"):
            own_files.claim(tmp_path / "a")
        (tmp_path / "b").touch()
        with pytest.raises(FileExistsError):
            own_files.replace(tmp_path / "b", tmp_path / "a")
        assert (tmp_path / "a").read_text() == "mine"

    def test_processes_that_claim_at_once_lose_no_name(self, tmp_path):
        own_files.adopt(tmp_path)
        code = (
            "import sys; from pathlib import Path; from nsys_insight import own_files\n"
            f"own_files.claim(*(Path({str(tmp_path)!r}) / f'{{sys.argv[1]}}-{{i}}' for i in range(100)))"
        )
        processes = [subprocess.Popen([sys.executable, "-c", code, str(number)]) for number in range(4)]
        assert [process.wait() for process in processes] == [0] * 4
        names = own_files._read_names(tmp_path)
        assert {f"{number}-{i}" for number in range(4) for i in range(100)} <= names.exact


FILES_OF_A_USER = (
    "nsys-insight-main/README.md", "nsys-insight-main/.git/config", "nsys-insight-x/.lock", "nsys-insight-x/data.bin",
    ".nsys-insight-1-ab/thesis.tex", ".nsys-insight-x-abcd1234.csv", "nsys-insight-notes.txt",
    f"{'0' * 32}.last", f"{'1' * 32}.sqlite", f"{'2' * 32}.duckdb", f"{'2' * 32}.duckdb.json", "model-3.duckdb",
    "run/thesis.tex", ".work/thesis.tex", "a.facts/about.json", "fleet.json", "shell-history",
)  # fmt: skip
COMMANDS = (
    "top TRACE", "top TRACE -o OUT/top.csv", "diagnose TRACE", "diagnose TRACE -f json -o OUT/d.json", "info TRACE",
    "cache", "cache clear", "cache clear --dry-run", "cache clear --older-than 1h", "steps TRACE",
    "export REPORT -o OUT/e.sqlite", "convert TRACE -o OUT/c.duckdb", "convert TRACE -o OUT/c",
    "convert TRACE -o OUT/c --force", "convert TRACE -o OUT/t.pftrace", "scrub TRACE -o OUT/s.sqlite",
    "report TRACE -o OUT/r.html", "fleet TRACE -o OUT/fleet", "fleet TRACE -o OUT", "top TRACE --no-cache -o OUT/n.csv",
    "sql TRACE 'SELECT 1 AS x' -o OUT/x.parquet", "baseline save TRACE --name main --user", "diff TRACE TRACE",
)  # fmt: skip
WITHOUT_MOST_FACTS = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from conversions import without_most_facts
from nsys_insight.__main__ import main
with without_most_facts():
    main()
"""
IN_DEFAULT_RUN = ("top TRACE -o OUT/top.csv", "convert TRACE -o OUT/c", "fleet TRACE -o OUT", "cache clear")


@pytest.mark.parametrize(
    "command",
    [pytest.param(text, marks=() if text in IN_DEFAULT_RUN else pytest.mark.slow, id=text) for text in COMMANDS],
)
def test_no_command_touches_the_files_of_a_user(command, sample, tmp_path):
    """A user's files lie in every temporary, cache and output place, with the names that the program itself uses."""
    folders = {name: tmp_path / name for name in ("tmp", "cache", "out", "work", "home")}
    for folder in folders.values():
        folder.mkdir(mode=0o700)
        write_files(folder, *FILES_OF_A_USER)
    trace = Path(shutil.copy(sample("decode_eager"), folders["work"] / "trace.sqlite"))
    before = {name: read_tree(folder) for name, folder in folders.items()}
    text = command.replace("TRACE", str(trace)).replace("OUT", str(folders["out"])).replace("REPORT", str(trace))
    environment = {
        **os.environ, "TMPDIR": str(folders["tmp"]), "NSYS_INSIGHT_CACHE_DIR": str(folders["cache"]),
        "HOME": str(folders["home"]), "XDG_CONFIG_HOME": str(folders["home"]),
    }  # fmt: skip
    program = [sys.executable, "-c", WITHOUT_MOST_FACTS] if command == "convert TRACE -o OUT/c" else PROCESS
    process = subprocess.run(
        [*program, *shlex.split(text)],
        cwd=folders["work"], env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Traceback" not in process.stderr
    for name, folder in folders.items():
        after = read_tree(folder)
        assert before[name].items() <= after.items(), (name, process.stderr)
    assert read_tree(folders["tmp"]) == before["tmp"]
    # In the cache there is nothing new but what the list has.
    new_names = set(read_tree(folders["cache"])) - set(before["cache"])
    assert all(own_files.is_own(folders["cache"] / name) for name in new_names)
    if command.startswith("fleet") and command.endswith("OUT"):
        assert "is not replaced" in process.stderr


def test_outputs_of_this_version_are_replaced(sample, tmp_path):
    """The second run of each command replaces what the first one wrote, and the last one leaves what a user added."""
    trace = shutil.copy(sample("churn"), tmp_path / "trace.sqlite")
    commands = ["convert -o converted --force", "fleet -o facts --workers 1", "top -o top.csv"]

    def run_all():
        os.utime(trace)
        codes = {}
        for command in commands:
            name, *flags = command.split()
            with without_most_facts():
                result = run(name, trace, *flags, cwd=tmp_path)
            codes[name] = (result.returncode, result.stderr)
        return codes

    run_all()
    assert {name: code for name, (code, _) in run_all().items()} == {"convert": 0, "fleet": 0, "top": 0}
    for name in ("converted/notes.md", "facts/trace.facts/notes.md"):
        (tmp_path / name).write_text("mine")
    with (tmp_path / "top.csv").open("a") as stream:
        stream.write("mine")
    before = read_tree(tmp_path)
    results = run_all()
    assert {name: code for name, (code, _) in results.items()} == {"convert": 2, "fleet": 2, "top": 2}
    assert all("notes.md" in results[name][1] for name in ("convert", "fleet"))
    assert read_tree(tmp_path) == before


def test_a_change_between_the_sampled_pages_of_a_big_output_is_noticed(cache, tmp_path, monkeypatch):
    monkeypatch.setattr(cache_folder, "MAX_HASHED_BYTES", 1_000)
    target = tmp_path / "big.json"
    outputs.write_output(target, bytes(1_000_000))
    outputs.write_output(target, bytes(1_000_000))
    status = target.stat()
    with target.open("r+b") as stream:
        stream.seek(10_000)
        stream.write(b"mine")
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(UsageError, match="was changed since"):
        outputs.write_output(target, b"new")
    assert b"mine" in target.read_bytes()
