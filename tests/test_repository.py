"""The user's repository is read with git, and nothing that the repository names runs."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from command_line import run as run_cli

from nsys_insight.bench.repository import read_git_commit, read_git_diff

TRACE = Path(__file__).parents[1] / "sample_traces" / "decode_eager.sqlite"
BENCH = shlex.join([sys.executable, "-c", "print('RESULT decode 1.5 ms')"])
RUNS = ("--min-runs", "3", "--max-runs", "3", "--warmup", "0")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the marker is a shell script")


def git(folder, *words):
    """Run git as its user would, without the user's own settings."""
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "protocol.file.allow=always"]
    completed = subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True)
    return completed.stdout.strip()


def make_repository(folder, text="old\n"):
    """Make a repository with a commit of files of several kinds."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q")
    for name in ("kernel.cu", "weights.bin", "notes.txt", "table.csv"):
        (folder / name).write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


def name_programs(folder, marker):
    """Let the repository name a program, which leaves a marker, in all ways that git has."""
    git_folder = Path(git(folder, "rev-parse", "--absolute-git-dir"))
    program = git_folder / "program.sh"
    program.write_text(f"#!/bin/sh\nbasename \"$0\" >> '{marker}'\ncat\n")
    program.chmod(0o755)
    hooks = git_folder / "hooks"
    for hook in ("post-index-change", "post-checkout", "pre-commit", "fsmonitor-watchman", "reference-transaction"):
        hooks.mkdir(exist_ok=True)
        (hooks / hook).write_text(program.read_text())
        (hooks / hook).chmod(0o755)
    settings = f"""
[core]
    fsmonitor = {program}
    hooksPath = {hooks}
    pager = {program}
    editor = {program}
    sshCommand = {program}
    askPass = {program}
    alternateRefsCommand = {program}
[filter "planted"]
    clean = {program}
    smudge = {program}
    required = true
[filter "served"]
    process = {program}
[diff]
    external = {program}
[diff "planted"]
    textconv = {program}
[diff "replaced"]
    command = {program}
[pager]
    diff = {program}
    status = {program}
    config = {program}
[alias]
    diff = !{program}
    status = !{program}
    rev-parse = !{program}
    config = !{program}
[credential]
    helper = !{program}
[submodule]
    recurse = true
[status]
    submoduleSummary = true
[diff]
    submodule = diff
"""
    config = git_folder / "config"
    config.write_text(config.read_text() + settings)
    (folder / ".gitattributes").write_text(
        "*.bin filter=planted\n*.txt diff=planted\n*.csv diff=replaced\n*.served filter=served\n"
    )


@pytest.fixture
def marker(tmp_path):
    return tmp_path / "marker"


@pytest.fixture
def hostile_folder(tmp_path, marker, monkeypatch):
    """Make a repository with a submodule. Each names programs and has changed files."""
    inner = make_repository(tmp_path / "inner")
    folder = make_repository(tmp_path / "outer")
    git(folder, "submodule", "--quiet", "add", str(inner), "inner")
    git(folder, "commit", "-qm", "second")
    name_programs(folder, marker)
    name_programs(folder / "inner", marker)
    for place in (folder, folder / "inner"):
        for name in ("kernel.cu", "weights.bin", "notes.txt", "table.csv"):
            (place / name).write_text("new\n")
    monkeypatch.chdir(folder)
    return folder


def test_the_planted_programs_would_run(hostile_folder, marker):
    subprocess.run(["git", "status"], cwd=hostile_folder, check=False, capture_output=True)
    assert marker.exists()


@pytest.mark.parametrize(
    "words",
    [
        ["bench", *RUNS, BENCH],
        ["baseline", "save", TRACE, "--name", "main"],
        ["experiment", "start", "--bench", BENCH, *RUNS],
    ],
    ids=lambda words: words[0],
)
def test_a_command_runs_nothing_that_the_folder_names(hostile_folder, marker, words):
    assert run_cli(*words).returncode == 0
    assert not marker.exists(), marker.read_text()


def test_a_try_runs_nothing_and_keeps_the_patch(hostile_folder, marker):
    assert run_cli("experiment", "start", "--bench", BENCH, *RUNS).returncode == 0
    run_cli("experiment", "try", "New kernel")
    run_cli("experiment", "revert")
    assert not marker.exists(), marker.read_text()
    folder = hostile_folder / "experiment" / "1-new-kernel"
    patch = (folder / "change.patch").read_text()
    assert [line.split()[-1] for line in patch.splitlines() if line.startswith("diff ")] == [
        "b/kernel.cu", "b/notes.txt", "b/table.csv",
    ]  # fmt: skip
    commit = git(hostile_folder, "rev-parse", "--short=12", "HEAD")
    assert tomllib.loads((folder / "try.toml").read_text())["conditions"]["commit"] == f"{commit}+changes"


class TestCommit:
    def test_a_commit_without_changes(self, tmp_path):
        folder = make_repository(tmp_path / "repository")
        (folder / "untracked").write_text("new\n")
        assert read_git_commit(folder) == {"commit": git(folder, "rev-parse", "--short=12", "HEAD")}
        assert read_git_diff(folder) == ""

    @pytest.mark.parametrize("change", ["written", "same size", "removed", "added", "staged", "in a subfolder"])
    def test_a_change_is_seen(self, tmp_path, change):
        folder = make_repository(tmp_path / "repository")
        kernel = folder / "kernel.cu"
        if change == "removed":
            kernel.unlink()
        elif change == "added":
            (folder / "other.cu").write_text("new\n")
            git(folder, "add", "other.cu")
        else:
            kernel.write_text("new\n" if change == "same size" else "a new line\n")
        if change == "staged":
            git(folder, "add", "kernel.cu")
        place = folder / "sub"
        place.mkdir()
        place = place if change == "in a subfolder" else folder
        assert read_git_commit(place)["commit"].endswith("+changes")
        assert read_git_diff(place) == git(folder, "diff", "HEAD") + "\n"

    def test_a_touched_file_is_no_change(self, tmp_path):
        folder = make_repository(tmp_path / "repository")
        (folder / "kernel.cu").touch()
        assert "+" not in read_git_commit(folder)["commit"]

    def test_files_with_a_filter_are_left_out_and_not_called_unchanged(self, tmp_path):
        folder = make_repository(tmp_path / "repository")
        (folder / ".gitattributes").write_text("*.bin filter=lfs\n")
        git(folder, "add", ".gitattributes")
        git(folder, "commit", "-qm", "second")
        (folder / "weights.bin").write_text("other weights\n")
        assert read_git_commit(folder)["commit"].endswith("+unchecked")
        assert read_git_diff(folder) == ""
        (folder / "kernel.cu").write_text("new\n")
        assert read_git_commit(folder)["commit"].endswith("+changes")
        assert "weights" not in read_git_diff(folder)

    def test_line_ends_are_compared_as_the_repository_stores_them(self, tmp_path):
        folder = make_repository(tmp_path / "repository")
        git(folder, "config", "core.autocrlf", "true")
        (folder / "kernel.cu").write_bytes(b"old\r\n")
        assert "+" not in read_git_commit(folder)["commit"]

    def test_a_worktree_has_its_own_commit_and_changes(self, tmp_path):
        folder = make_repository(tmp_path / "repository")
        git(folder, "worktree", "add", "-q", "-b", "other", str(tmp_path / "worktree"))
        (tmp_path / "worktree" / "kernel.cu").write_text("new\n")
        assert read_git_commit(tmp_path / "worktree")["commit"].endswith("+changes")
        assert "+" not in read_git_commit(folder)["commit"]
        assert "-old\n+new\n" in read_git_diff(tmp_path / "worktree")

    def test_an_index_in_two_files_and_hashes_of_64_digits(self, tmp_path):
        folder = tmp_path / "repository"
        folder.mkdir()
        git(folder, "init", "-q", "--object-format=sha256")
        make_repository(folder)
        git(folder, "update-index", "--split-index")
        (folder / "kernel.cu").write_text("new\n")
        assert read_git_commit(folder) == {"commit": git(folder, "rev-parse", "HEAD")[:12] + "+changes"}
        assert "-old\n+new\n" in read_git_diff(folder)

    def test_a_moved_submodule_is_a_change(self, hostile_folder):
        git(hostile_folder, "checkout", "-q", "--", ".")
        subprocess.run(["git", "-C", "inner", "checkout", "-q", "--force", "HEAD"], check=True, capture_output=True)
        git(hostile_folder / "inner", "commit", "-q", "--allow-empty", "-m", "second")
        assert "Subproject commit" in read_git_diff(hostile_folder)

    def test_no_repository_and_no_commit(self, tmp_path):
        assert (read_git_commit(tmp_path), read_git_diff(tmp_path)) == ({}, "")
        git(tmp_path, "init", "-q")
        assert (read_git_commit(tmp_path), read_git_diff(tmp_path)) == ({}, "")

    def test_a_git_of_the_folder_is_not_run(self, tmp_path, monkeypatch):
        folder = make_repository(tmp_path / "repository")
        (folder / "git").write_text(f"#!/bin/sh\ntouch '{tmp_path / 'marker'}'\n")
        (folder / "git").chmod(0o755)
        monkeypatch.chdir(folder)
        monkeypatch.setenv("PATH", ".")
        assert read_git_commit() == {}
        assert not (tmp_path / "marker").exists()
