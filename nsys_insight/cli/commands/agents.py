"""Commands for coding agents: ``skill`` installs the Agent Skill, ``mcp`` serves the Model Context Protocol."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from nsys_insight import outputs, own_files
from nsys_insight.cli import terminal
from nsys_insight.cli.commands import Command
from nsys_insight.errors import ToolError, UsageError, cannot_write_error
from nsys_insight.extras import write_install_command as install_extra
from nsys_insight.paths import package_folder
from nsys_insight.records import check, parse_json
from nsys_insight.text.units import parse_seconds

SKILL_NAME = "nsys-insight"
# The installed files and their hashes. Only files that have not changed since may be replaced.
MANIFEST = ".nsys-insight.json"
_AGENT_FOLDERS = (".claude", ".agents")
_TRACES_HELP = "Traces that may be queried, and folders: all traces below them."

app = typer.Typer(help="The Agent Skill, which tells a coding agent how to use this tool.", no_args_is_help=True)


@app.callback()
def _keep_command_group() -> None:
    """Keep `install` a subcommand. Without a callback, Typer would merge a single subcommand into the group."""


@app.command()
def install(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]",
            help="The folder for skills; by default .claude/skills if there is a folder .claude, else .agents/skills.",
        ),
    ] = None,
    *,
    force: Annotated[bool, typer.Option("--force", help="Also replace files that this command did not write.")] = False,
) -> None:
    """Write the skill into DIR/nsys-insight, or update one that was written before.

    If a file is there that this command did not write, or that was changed since, nothing is written unless --force
    is given. Other files in the folder do not change.
    """
    if folder is None:
        folder = (
            next((Path(name) for name in _AGENT_FOLDERS if Path(name).is_dir()), Path(_AGENT_FOLDERS[-1])) / "skills"
        )
    target = folder / SKILL_NAME
    shipped_files, written_hashes = read_skill_files(), _read_manifest(target)
    outside_names = [name for name in shipped_files if not _is_below(target, name)]
    foreign_names = [
        name
        for name, content in shipped_files.items()
        if not _can_replace(target / name, content, written_hashes.get(name))
    ]
    if outside_names or (foreign_names and not force):
        raise UsageError(
            f"{target / (outside_names + foreign_names)[0]} was not written by nsys-insight or was changed, so the "
            "skill is not installed",
            "name another folder" if outside_names else "name another folder, or replace it with --force",
        )
    if (target / MANIFEST).is_symlink():
        raise UsageError(f"{target / MANIFEST} is a link: nothing is written", "remove it, or name another folder")
    try:
        for name, content in shipped_files.items():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            outputs.write_output(target / name, content, force=True)
        for name in written_hashes.keys() - shipped_files.keys():
            if _is_below(target, name) and _hash_file(target / name) == written_hashes[name]:
                own_files.remove(target / name, is_proven=True)
    except OSError as error:
        raise cannot_write_error(target, error) from None
    outputs.write_output(
        target / MANIFEST,
        json.dumps({name: _hash_content(content) for name, content in shipped_files.items()}, indent=1),
        force=force or bool(written_hashes),
    )
    print(target / "SKILL.md")
    terminal.note("restart your agent to load the skill")


@app.command()
def show(
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="One of its files, such as references/sql.md.")
    ] = "SKILL.md",
) -> None:
    """Print the skill, for an agent that reads it without installing it."""
    files = read_skill_files()
    if file not in files:
        raise UsageError(f"the skill has no file {file!r}", f"choose one of: {', '.join(files)}")
    print(files[file].decode().rstrip())


def read_skill_files() -> dict[str, bytes]:
    """Read the skill's files in the package: content by path in the skill's folder."""
    source = package_folder() / "skills" / SKILL_NAME
    return {path.relative_to(source).as_posix(): path.read_bytes() for path in sorted(source.rglob("*.md"))}


def _can_replace(path: Path, content: bytes, written_hash: str | None) -> bool:
    """Return whether a file may be written: it is missing, has the same content, or has not changed since written."""
    if not path.exists() and not path.is_symlink():
        return True
    file_hash = _hash_file(path)
    return file_hash is not None and file_hash in (_hash_content(content), written_hash)


def _read_manifest(target: Path) -> dict[str, str]:
    """Read the hashes of the installed files by name; empty if there is no readable manifest."""
    with suppress(OSError, ValueError):
        manifest: dict[str, str] = check(parse_json((target / MANIFEST).read_text(encoding="utf-8")), dict[str, str])
        return manifest
    return {}


def _is_below(target: Path, name: str) -> bool:
    """Return whether a file is in the skill's folder after following links."""
    return (target / name).resolve().is_relative_to(target.resolve())


def _hash_file(path: Path) -> str | None:
    """Hash a regular file; return None for anything else."""
    if path.is_symlink() or not path.is_file():
        return None
    with suppress(OSError):
        return _hash_content(path.read_bytes())
    return None


def _hash_content(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def mcp(
    traces: Annotated[list[Path] | None, typer.Argument(metavar="TRACE|FOLDER...", help=_TRACES_HELP)] = None,
    timeout: Annotated[str, typer.Option("--timeout", help="Stop a query that takes longer.")] = "60s",
) -> None:
    """Start an MCP server for coding agents on stdin and stdout. It runs until stdin ends.

    Six tools: brief, diagnose, report, sql, views and diff. They return short text, and rows as structured content
    that has a schema. They read only the traces named here or below the folders named here, and write no files. A trace
    stays open for the next question. Needs the extra: pip install '.[mcp]' in the checkout of nsys-insight.
    """
    if not traces:
        raise UsageError("name a trace or a folder that may be queried", "nsys-insight mcp FOLDER")
    timeout_s = parse_seconds(timeout, flag="--timeout")
    try:
        from nsys_insight.cli.mcp_server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types", "pydantic"):
            raise
        raise ToolError("the Model Context Protocol needs the package mcp", install_extra("mcp")) from None
    serve(traces, timeout_s)


SKILL = Command(
    "skill",
    lambda: app,
    group="share",
    place=190,
    help="Show or install the Agent Skill, which tells a coding agent how to use this tool",
    examples=("skill install", "skill install .claude/skills"),
    subcommands={
        "install": ("skill install", "skill install .claude/skills"),
        "show": ("skill show", "skill show references/sql.md"),
    },
)


MCP = Command(
    "mcp",
    lambda: mcp,
    group="share",
    place=200,
    help="Start an MCP server for coding agents",
    examples=("mcp trace.nsys-rep", "mcp traces/ --timeout 30s"),
)
