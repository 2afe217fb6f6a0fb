"""What coding agents use: ``skill`` writes the Agent Skill to where they look for skills, ``mcp`` answers them."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from nsys_insight import outputs
from nsys_insight.cli import terminal
from nsys_insight.cli.commands import Command
from nsys_insight.errors import UsageError, cannot_write
from nsys_insight.extras import install as install_extra
from nsys_insight.paths import package_folder
from nsys_insight.text.units import parse_duration

NAME = "nsys-insight"
# What was written, by hash: only what is still as it was written may be replaced.
MANIFEST = ".nsys-insight.json"
_AGENTS = (".claude", ".agents")
_TRACES = "Traces that may be queried, and folders: all traces below them."

app = typer.Typer(help="The Agent Skill, which tells a coding agent how to use this tool.", no_args_is_help=True)


@app.callback()
def _root() -> None:
    """Keep `install` a command of its own, though it is the only one."""


@app.command()
def install(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]",
            help="The folder for skills; by default .claude/skills if there is a folder .claude, else .agents/skills.",
            show_default=False,
        ),
    ] = None,
    *,
    force: Annotated[bool, typer.Option("--force", help="Also replace files that this command did not write.")] = False,
) -> None:
    """Write the skill into DIR/nsys-insight, or update one that was written before.

    If a file is there that this command did not write, or that was changed since, nothing is written unless --force
    is given. Other files in the folder are kept.
    """
    if folder is None:
        folder = next((Path(each) for each in _AGENTS if Path(each).is_dir()), Path(_AGENTS[-1])) / "skills"
    target = folder / NAME
    shipped, written = files(), _written(target)
    outside = [name for name in shipped if not _is_below(target, name)]
    strange = [name for name, content in shipped.items() if not _may_replace(target / name, content, written.get(name))]
    if outside or (strange and not force):
        raise UsageError(
            f"{target / (outside + strange)[0]} was not written by nsys-insight or was changed, so the "
            "skill is not installed",
            "name another folder" if outside else "name another folder, or replace it with --force",
        )
    try:
        for name, content in shipped.items():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            outputs.save(target / name, content)
        for name in written.keys() - shipped.keys():
            if _is_below(target, name) and _hash(target / name) == written[name]:
                (target / name).unlink()
    except OSError as error:
        raise cannot_write(target, error) from None
    outputs.save(target / MANIFEST, json.dumps({name: _digest(content) for name, content in shipped.items()}, indent=1))
    print(target / "SKILL.md")
    terminal.note("agents find it when they are restarted")


def files() -> dict[str, bytes]:
    """The files of the skill that the package brings, by their path in its folder."""
    source = package_folder() / "skills" / NAME
    return {path.relative_to(source).as_posix(): path.read_bytes() for path in sorted(source.rglob("*.md"))}


def _may_replace(path: Path, content: bytes, written: str | None) -> bool:
    """Whether a file is not there, or holds what is to be written, or still what was written before."""
    if not path.exists() and not path.is_symlink():
        return True
    found = _hash(path)
    return found is not None and found in (_digest(content), written)


def _written(target: Path) -> dict[str, str]:
    """What was written there before, by hash; nothing where that is unknown."""
    with suppress(OSError, ValueError, AttributeError):
        found = json.loads((target / MANIFEST).read_text(encoding="utf-8"))
        return {str(name): str(digest) for name, digest in found.items()}
    return {}


def _is_below(target: Path, name: str) -> bool:
    """Whether a file lies in the skill's folder, and no link leads out of it."""
    return (target / name).resolve().is_relative_to(target.resolve())


def _hash(path: Path) -> str | None:
    """The hash of a regular file; None of anything else."""
    if path.is_symlink() or not path.is_file():
        return None
    with suppress(OSError):
        return _digest(path.read_bytes())
    return None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def mcp(
    traces: Annotated[list[Path] | None, typer.Argument(metavar="TRACE|FOLDER...", help=_TRACES)] = None,
    timeout: Annotated[str, typer.Option("--timeout", help="Stop a query that takes longer.")] = "60s",
) -> None:
    """Answer a coding agent over the Model Context Protocol, on stdin and stdout, until stdin ends.

    Four tools: diagnose, report, sql and diff. They answer with the same JSON as --format json, read only the traces
    named here or below the folders named here, and write no files. Needs the extra: pip install 'nsys-insight[mcp]'.
    """
    if not traces:
        raise UsageError("name a trace or a folder that may be queried", "nsys-insight mcp FOLDER")
    timeout_s = parse_duration(f"{timeout}s" if timeout.isdecimal() else timeout, flag="--timeout") / 1e9
    try:
        from nsys_insight.cli.mcp_server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types", "pydantic"):
            raise
        raise UsageError("the Model Context Protocol needs the package mcp", install_extra("mcp")) from None
    serve(traces, timeout_s)


SKILL = Command(
    "skill",
    lambda: app,
    group="share",
    place=190,
    help="Install the Agent Skill, which tells a coding agent how to use this tool",
    examples=("skill install", "skill install .claude/skills"),
    inner={
        "install": ("skill install", "skill install .claude/skills"),
    },
)


MCP = Command(
    "mcp",
    lambda: mcp,
    group="share",
    place=200,
    help="Answer a coding agent over the Model Context Protocol, about the given traces",
    examples=("mcp trace.nsys-rep", "mcp traces/ --timeout 30s"),
)
