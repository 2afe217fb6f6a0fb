"""Write what is generated: the outputs in the README's console blocks, and docs/model.md from the model's comments.

    python docs/generate.py

Every command of a console block runs in sample_traces, at 132 columns without colour, with a cache of its
own. tests/test_docs.py fails when the files are not what this would write.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
MODEL = ROOT / "docs" / "model.md"


def console(command: str) -> str:
    """Run one `nsys-insight …` command and return what it prints: stdout, then stderr.

    Raises:
        RuntimeError: It failed.
    """
    program, *arguments = shlex.split(command)
    if program != "nsys-insight":
        raise RuntimeError(f"only nsys-insight runs in a console block, not {program}")
    with tempfile.TemporaryDirectory() as cache:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("NSYS_INSIGHT_")},
            "COLUMNS": "132",
            "NSYS_INSIGHT_CACHE_DIR": cache,
            "PYTHONPATH": str(ROOT),
        }
        done = subprocess.run(
            [sys.executable, "-m", "nsys_insight", *arguments],
            cwd=ROOT / "sample_traces", env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{command}\n{done.stderr}")
    return done.stdout + done.stderr


def refreshed(text: str) -> str:
    """Return a Markdown text with the outputs of its console blocks as they are now."""

    def block(match: re.Match[str]) -> str:
        commands = re.findall(r"^\$ (.+)$", match[1], re.MULTILINE)
        return "```console\n" + "\n".join(f"$ {command}\n{console(command)}" for command in commands) + "```"

    return re.sub(r"```console\n(.*?)```", block, text, flags=re.DOTALL)


def model_page() -> str:
    """Return the page about the views, from the comments in queries/model."""
    from nsys_insight.schema import described

    lines = ["# The views", "", "What `nsys-insight sql` and your own packs query. Generated from `queries/model`.", ""]
    for view, meaning in described().rows():
        lines += [f"## {view}", "", meaning, "", "| column | type | unit | meaning |", "|---|---|---|---|"]
        lines += [f"| `{name}` | {kind} | {unit or ''} | {text} |" for name, kind, unit, text in described(view).rows()]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    README.write_text(refreshed(README.read_text(encoding="utf-8")), encoding="utf-8")
    MODEL.write_text(model_page(), encoding="utf-8")
