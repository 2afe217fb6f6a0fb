"""What a new user types first: it works, or says what to type instead."""

from __future__ import annotations

import shutil

import command_line
import pytest


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run commands in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return command_line.run


@pytest.mark.parametrize("command", ["skill", "baseline", "experiment"])
def test_a_missing_subcommand_is_named(run, command):
    result = run(command)
    assert result.returncode == 2
    assert f"error: nsys-insight {command} needs a subcommand\n" in result.stderr


def test_a_timeline_for_perfetto_needs_no_file_name(run, sample, tmp_path):
    result = run("convert", sample("decode_eager"), "--as", "perfetto")
    assert result.returncode == 0
    assert "decode_eager.pftrace written; open it at ui.perfetto.dev" in result.stderr
    assert (tmp_path / "decode_eager.pftrace").stat().st_size > 10_000
    assert run("convert", sample("decode_eager")).returncode == 2  # to what?


def test_bench_takes_one_quoted_command(run):
    result = run("bench", "--max-runs", 6, "--min-runs", 6, "--warmup", 0, "sleep 0.01")
    assert (result.returncode, "wall" in result.stdout) == (0, True)
    assert "cannot be run" in run("bench", "no-such-program 0.01").stderr


@pytest.mark.slow
def test_the_page_of_two_traces_reads_before_to_after(run, sample, tmp_path):
    for name in ("decode_eager", "decode_graph_node"):
        shutil.copy(sample(name), tmp_path)
    result = run("diff", "decode_eager.sqlite", "decode_graph_node.sqlite", "-o", "page.html")
    assert result.returncode == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "decode_eager.sqlite → decode_graph_node.sqlite" in page
    assert "Improved: wall" in page
