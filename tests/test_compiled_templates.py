"""Templates are compiled once, and kept as Python keeps compiled modules."""

import shutil
import sys
from pathlib import Path

import pytest
from jinja2 import Environment, FileSystemLoader

from nsys_insight.page.compiled import Compiled


@pytest.fixture
def render(tmp_path, monkeypatch):
    """Fill in a template of a new process, and tell whether it was compiled for that."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    (tmp_path / "hello.j2").write_text("Hello {{ name }}")
    compiled = []

    class Noting(Environment):
        def _generate(self, *source, **how):
            compiled.append(source)
            return super()._generate(*source, **how)

    def rendered():
        compiled.clear()
        environment = Noting(loader=FileSystemLoader(tmp_path), bytecode_cache=Compiled(tmp_path))
        return environment.get_template("hello.j2").render(name="you"), bool(compiled)

    return rendered


def test_the_second_process_does_not_compile(render):
    assert render() == ("Hello you", True)
    assert render() == ("Hello you", False)


def test_a_template_that_has_changed_is_compiled_again(render, tmp_path):
    render()
    (tmp_path / "hello.j2").write_text("Good day {{ name }}")
    assert render() == ("Good day you", True)
    assert render() == ("Good day you", False)


def test_nothing_is_left_where_python_leaves_no_compiled_modules(render, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert render() == ("Hello you", True)
    assert [path.name for path in tmp_path.iterdir()] == ["hello.j2"]


def test_compiled_templates_are_where_compiled_modules_are_to_be(render, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "elsewhere"))
    render()
    assert not (tmp_path / "__pycache__").exists()
    assert render() == ("Hello you", False)


@pytest.mark.parametrize("content", [b"", b"j2", b"\x00" * 100, "half"])
def test_a_damaged_file_is_made_anew(render, tmp_path, content):
    render()
    (kept,) = (tmp_path / "__pycache__").iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(whole[: len(whole) // 2] if content == "half" else content)
    assert render() == ("Hello you", True)
    assert kept.read_bytes() == whole


def test_where_nothing_can_be_written_templates_are_compiled_each_time(render, tmp_path):
    (tmp_path / "__pycache__").write_text("no folder")
    assert render() == render() == ("Hello you", True)


def test_a_file_that_cannot_be_put_in_its_place_is_not_left_behind(render, tmp_path, monkeypatch):
    def fails(*_):
        raise OSError

    monkeypatch.setattr(Path, "replace", fails)
    assert render() == render() == ("Hello you", True)
    assert not list((tmp_path / "__pycache__").iterdir())


def test_nothing_else_is_left_in_the_folder(render, tmp_path):
    render()
    assert len(list((tmp_path / "__pycache__").iterdir())) == 1
    shutil.rmtree(tmp_path / "__pycache__")
    assert render() == ("Hello you", True)
