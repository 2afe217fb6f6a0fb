"""Write what is generated: the outputs in the README's console blocks, and most pages of docs.

    python docs/generate.py

Every command of a console block runs in sample_traces, at 132 columns without colour, with a cache of its
own; docs/examples at 80. tests/test_docs.py fails when the files are not what this would write.
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


def console(command: str, columns: int = 132) -> str:
    """Run one `nsys-insight …` command and return what it prints at so many columns: stdout, then stderr.

    Raises:
        RuntimeError: It failed.
    """
    program, *arguments = shlex.split(command)
    if program != "nsys-insight":
        raise RuntimeError(f"only nsys-insight runs in a console block, not {program}")
    with tempfile.TemporaryDirectory() as cache:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("NSYS_INSIGHT_")},
            "COLUMNS": str(columns),
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
    from nsys_insight.session.schema import described

    lines = ["# The views", "", "What `nsys-insight sql` and your own packs query. Generated from `queries/model`.", ""]
    for view, meaning in described().rows():
        lines += [f"## {view}", "", meaning, "", "| column | type | unit | meaning |", "|---|---|---|---|"]
        lines += [f"| `{name}` | {kind} | {unit or ''} | {text} |" for name, kind, unit, text in described(view).rows()]
        lines.append("")
    return "\n".join(lines)


def rules_page() -> str:
    """Return the page about ncu's rules, from the headers in queries/ncu."""
    from nsys_insight.ncu.rules import ncu_rules
    from nsys_insight.packs.rules import SEVERITIES

    lines = [
        "# Rules",
        "",
        "What `nsys-insight ncu report` looks for. Generated from `queries/ncu`, where thresholds are parameters with",
    ]
    lines += ["their reasons. A rule speaks only of the implementation types that it has an action for.", ""]
    for rule in sorted(all_rules(), key=lambda rule: (SEVERITIES.index(rule.severity), rule.name)):
        condition = " ".join(rule.statement().partition("WHERE")[2].partition("ORDER BY")[0].split())
        lines += [f"## {rule.name}", "", f"{rule.severity}: {rule.title}. `{condition}`", ""]
        lines += [f"- {kind}: {action}" for kind, action in rule.actions.items()]
        lines.append("")
    return "\n".join(lines)


def findings_page() -> str:
    """Return the page about what `diagnose` looks for, from the headers in queries/findings."""
    import tomllib

    from nsys_insight.diagnose.findings import finding_rules
    from nsys_insight.paths import queries_folder

    lines = ["# Findings", "", "What `nsys-insight diagnose` looks for. Generated from `queries/findings`.", ""]
    for rule in all_rules():
        header = (queries_folder() / "findings" / f"{rule.name}.sql").read_text(encoding="utf-8").split("*/")[0]
        params = tomllib.loads(header.lstrip()[2:]).get("params", {})
        lines += [f"## {rule.name}", "", f"{rule.title}. {rule.meaning}", "", f"- do: {rule.action}"]
        lines += [f"- unless: {rule.caveat}", f"- see: `nsys-insight {rule.report}`"]
        lines += [f"- threshold: {fact['default']}. {fact['help']}" for fact in params.values()]
        lines.append("")
    return "\n".join(lines)


def diagnosis_of(name: str) -> str:
    """Return what `diagnose` says of a sample trace, as a terminal of 80 columns shows it."""
    command = f"nsys-insight diagnose {name}.sqlite"
    return f"$ {command}\n{console(command, 80)}"


def ncu_report(name: str, *flags: str) -> str:
    """Return what `ncu report` writes about the data of the tests."""
    data = ROOT / "tests" / "data" / "ncu"
    files = sorted(data.glob(f"{name}.ncu.*.csv"), reverse=True)
    words = [os.path.relpath(file, ROOT / "sample_traces") for file in files]
    written = console(shlex.join(["nsys-insight", "ncu", "report", *words, "--format", "markdown", *flags]))
    return "\n".join(line for line in written.splitlines() if not line.startswith("note: ")) + "\n"


NCU_REPORTS = {
    "zoo_a": ("--limit", "8"),
    "decode_eager": ("--trace", "decode_eager.sqlite", "--tokens", "32", "--limit", "6"),
}

DIAGNOSES = ("churn", "decode_eager", "decode_fresh", "decode_graph_node", "decode_graph_whole")

if __name__ == "__main__":
    README.write_text(refreshed(README.read_text(encoding="utf-8")), encoding="utf-8")
    MODEL.write_text(model_page(), encoding="utf-8")
    (ROOT / "docs" / "ncu").mkdir(exist_ok=True)
    (ROOT / "docs" / "ncu" / "rules.md").write_text(rules_page(), encoding="utf-8")
    for name, flags in NCU_REPORTS.items():
        (ROOT / "docs" / "ncu" / f"{name}.md").write_text(ncu_report(name, *flags), encoding="utf-8")
    (ROOT / "docs" / "findings.md").write_text(findings_page(), encoding="utf-8")
    (ROOT / "docs" / "examples").mkdir(exist_ok=True)
    for name in DIAGNOSES:
        (ROOT / "docs" / "examples" / f"diagnose_{name}.txt").write_text(diagnosis_of(name), encoding="utf-8")
