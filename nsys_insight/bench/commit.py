"""Which state of the user's repository is measured. It is only read: not even git's index is refreshed."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def commit(folder: Path | None = None) -> dict[str, str]:
    """The commit of the folder, and whether files differ from it; empty outside of a repository."""
    found = _git(["rev-parse", "--short=12", "HEAD"], folder)
    if found is None:
        return {}
    changed = _git(["status", "--porcelain", "--untracked-files=no"], folder)
    return {"commit": found.strip() + ("+changes" if changed else "")}


def change(folder: Path | None = None) -> str:
    """How the files differ from the commit, as a patch; empty if they do not, or outside of a repository."""
    return _git(["diff", "HEAD", "--no-color", "--no-ext-diff", "--no-textconv"], folder) or ""


def _git(arguments: Sequence[str], folder: Path | None) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - it reads
            ["git", "--no-optional-locks", *arguments],  # noqa: S607 - the user's own git
            cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None
