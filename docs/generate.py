"""Write what is generated in committed documents, or the pages of the site into a folder.

    python docs/generate.py
    python docs/generate.py build/pages

The folder has the documents at their paths in the repository, so that their links work. Each command of a console block
runs in sample_traces, without color, at the width of its page, with its own cache. tests/test_docs.py fails if a file
differs from what this script writes. Pages that have only generated text are not committed: the site has them.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nsys_insight.diagnose.findings import FindingRule
    from nsys_insight.packs.pack import Pack

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
STUB = ROOT / "nsys_insight" / "reports.pyi"
SKILL_REPORTS = ROOT / "nsys_insight" / "skills" / "nsys-insight" / "references" / "reports.md"
README_COLUMNS = 100


def console(command: str, columns: int = 132) -> str:
    """Run one `nsys-insight …` command in a terminal of `columns` columns. Return stdout, then stderr.

    Raises:
        RuntimeError: The command failed.
    """
    program, *arguments = shlex.split(command)
    if program != "nsys-insight":
        raise RuntimeError(f"a console block runs only nsys-insight, not {program}")
    with tempfile.TemporaryDirectory() as cache:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("NSYS_INSIGHT_")},
            "COLUMNS": str(columns),
            "NSYS_INSIGHT_CACHE_DIR": cache,
            "PYTHONPATH": str(ROOT),
        }
        process = subprocess.run(
            [sys.executable, "-m", "nsys_insight", *arguments],
            cwd=ROOT / "sample_traces", env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
    if process.returncode:
        raise RuntimeError(f"{command}\n{process.stderr}")
    return process.stdout + process.stderr


def run_blocks(text: str, columns: int = 132) -> str:
    """Return a page's text with the current outputs of its console blocks."""

    def run_block(match: re.Match[str]) -> str:
        commands = re.findall(r"^\$ (.+)$", match[1], re.MULTILINE)
        return "```console\n" + "\n".join(f"$ {command}\n{console(command, columns)}" for command in commands) + "```"

    return re.sub(r"```console\n(.*?)```", run_block, text, flags=re.DOTALL)


def reports_page(*, linked: bool = False) -> str:
    """Return the page that lists all reports with their questions, from the headers in queries/reports.

    With `linked`, each report is a link to its page on the site.
    """
    from nsys_insight.packs.library import packs_by_topic

    lines = ["# Reports", "", "Generated from `queries/reports`.", "", "| command | question |", "|---|---|"]
    for topic, packs in packs_by_topic().items():
        lines.append(f"| **{topic.title}** | *{topic.summary}* |")
        for pack in packs:
            command = f"`{f'{pack.name} {pack.examples[0]}'.strip()}`"
            lines.append(f"| {f'[{command}](reports/{pack.name}.md)' if linked else command} | {pack.question} |")
    return "\n".join([*lines, ""])


def skill_reports() -> str:
    """Return the list of reports for the Agent Skill, from the headers in queries/reports."""
    from nsys_insight.packs import step_options
    from nsys_insight.packs.library import packs_by_topic

    step_flags = ", ".join(f"`{param.flag}`" for param in step_options.PARAMS.values())
    lines = [
        "# Reports",
        "",
        "`nsys-insight REPORT TRACE [FLAGS] --format json`; `nsys-insight REPORT --help` has its columns. All take",
        "`--nvtx`, `--from`, `--to`, `--device`, `--process`, `--stream` and `--limit`, those marked * also",
        f"{step_flags}. Generated from `queries/reports`.",
    ]
    for topic, packs in packs_by_topic().items():
        lines += ["", f"## {topic.title}", ""]
        for pack in packs:
            flags = " ".join(
                f"[{param.flag} {'|'.join(param.choices)}".rstrip() + "]" for param in pack.params.values()
            )
            star = " *" if step_options.step_params_of(pack.sql) else ""
            lines.append(f"- `{f'{pack.name} {flags}'.strip()}`{star}: {pack.question}")
    return "\n".join([*lines, ""])


def model_page() -> str:
    """Return the page that describes the views, from their headers."""
    from nsys_insight.model import views
    from nsys_insight.session.schema import describe_schema

    meanings: dict[str, str] = dict(describe_schema(internal=True).rows())
    public = sorted(views.documented_views(internal=False).values(), key=lambda view: (view.topic, view.name))
    topics = {topic: list(group) for topic, group in groupby(public, key=lambda view: view.topic)}
    lines = [
        "# The views",
        "",
        "`nsys-insight sql` and your own packs query these views. Generated from `queries/model`.",
        "",
    ]
    for topic, group in topics.items():
        lines.append(f"- [{topic}](#{topic}): {', '.join(f'`{view.name}`' for view in group)}")
    for topic, group in topics.items():
        lines += ["", f"## {topic}"]
        for name in (view.name for view in group):
            lines += [
                "",
                f"### `{name}`",
                "",
                meanings[name],
                "",
                "| column | type | unit | meaning |",
                "|---|---|---|---|",
            ]
            lines += [
                f"| `{column}` | {kind} | {unit or ''} | {text} |"
                for column, kind, unit, text in describe_schema(name).rows()
            ]
    lines += [
        "",
        "## Internal views",
        "",
        "The views above read these. They may change at any time: do not query them.",
    ]
    lines += ["", "| view | meaning |", "|---|---|"]
    lines += [f"| `{name}` | {meaning} |" for name, meaning in meanings.items() if name.startswith("_")]
    return "\n".join([*lines, ""])


def facts_page() -> str:
    """Return the page that lists the facts, the views that show them, and what their queries read."""
    from nsys_insight.model import views
    from nsys_insight.model.producers import fact_tables
    from nsys_insight.sql.names import scan_names

    documented_views = views.documented_views()
    lines = [
        "# The facts",
        "",
        "A fact is a result that takes work to find and that several reports need. It is found once per session,",
        "when a query first reads it, and stored as a table of the schema `facts`. Views show these tables; query",
        "the views. Generated from the views of `queries/model` with `stored = true`, and from `nsys_insight/facts`.",
        "",
        "| fact | shown by | found in |",
        "|---|---|---|",
    ]
    for fact, producer in sorted(fact_tables().items()):
        shown_by = [name for name, view in documented_views.items() if fact in view.mentions.relations_in("facts")]
        names = scan_names(producer.query)
        sources = [f"`{name}`" for name in sorted(names.model_names & documented_views.keys())]
        sources += ["tables of the export"] if names.relations_in("raw") else []
        lines.append(
            f"| `{fact}` | {', '.join(f'`{name}`' for name in shown_by) or 'macros of the model'} "
            f"| {', '.join(sources) or 'several statements'} |"
        )
    return "\n".join([*lines, ""])


def rules_page() -> str:
    """Return the page that lists the rules for ncu, from the headers in queries/ncu_rules."""
    from nsys_insight.ncu.rules import load_ncu_rules
    from nsys_insight.packs.rules import SEVERITIES

    lines = [
        "# Rules",
        "",
        "`nsys-insight ncu report` applies these rules. Generated from `queries/ncu_rules`, where thresholds are",
    ]
    lines += [
        "parameters with their reasons. A rule applies only to the implementation types that it has an action for.",
        "",
    ]
    for rule in sorted(load_ncu_rules(), key=lambda rule: (SEVERITIES.index(rule.severity), rule.name)):
        condition = " ".join(rule.statement().partition("WHERE")[2].partition("ORDER BY")[0].split())
        lines += [f"## {rule.name}", "", f"{rule.severity}: {rule.title}. `{condition}`", ""]
        lines += [f"- {kind}: {action}" for kind, action in rule.actions.items()]
        lines.append("")
    return "\n".join(lines)


def findings_page() -> str:
    """Return the page that lists the rules of `diagnose`, from the headers in queries/findings."""
    from nsys_insight.diagnose.rule_text import GROUPS

    lines = [
        "# Findings",
        "",
        "`nsys-insight diagnose` looks for these findings; `nsys-insight rule CODE` explains one.",
        "Generated from `queries/findings`.",
    ]
    for digit, group in GROUPS.items():
        rules = [rule for rule in finding_rules() if rule.code[3] == digit]
        lines += ["", f"## {group}", "", "| code | name | finding | effort |", "|---|---|---|---|"]
        lines += [f"| [{rule.code}]({rule.code}.md) | {rule.name} | {rule.title} | {rule.effort} |" for rule in rules]
    return "\n".join(lines) + "\n"


def finding_rules() -> list[FindingRule]:
    """Return the rules of `diagnose`, in the order of their codes."""
    from nsys_insight.diagnose.findings import read_finding_rules

    return sorted(read_finding_rules(), key=lambda rule: rule.code)


def finding_pages() -> dict[str, str]:
    """Return a page for each rule of `diagnose`, by code."""
    from nsys_insight.diagnose.rule_text import write_rule

    return {rule.code: write_rule(rule) for rule in finding_rules()}


def ncu_report(name: str, *flags: str) -> str:
    """Return the output of `ncu report` on data of the tests."""
    data = ROOT / "tests" / "data" / "ncu"
    files = sorted(data.glob(f"{name}.ncu.*.csv"), reverse=True)
    file_arguments = [os.path.relpath(file, ROOT / "sample_traces") for file in files]
    markdown = console(shlex.join(["nsys-insight", "ncu", "report", *file_arguments, "--format", "markdown", *flags]))
    return "\n".join(line for line in markdown.splitlines() if not line.startswith("note: ")) + "\n"


NCU_REPORTS = {
    "zoo_a": ("--limit", "8"),
    "decode_eager": ("--trace", "decode_eager.sqlite", "--tokens", "32", "--limit", "6"),
}

# Pages with console blocks, and the width of the terminal that the blocks show.
PAGES = {"tutorial": 100, "guide": 132}


# Traces for reports that are empty on the trace of the README's examples. Paths are relative to sample_traces.
REPORT_TRACES = {
    "ranks": "../tests/data/ranks/*rank*.sqlite",
    "collectives": "../tests/data/ranks/*rank*.sqlite",
    "cpu-work": "../tests/data/chains/decode_cpu.sqlite",
    "mallocs": "churn.sqlite",
    "copies": "churn.sqlite",
}
SITE_COLUMNS = 100
# The documents outside docs.
SITE_FILES = ("*.md", "LICENSE", "sample_traces/*.md", "benchmarks/*/*.md")


def report_page(pack: Pack) -> str:
    """Return the page of a report: its question, an example, options, columns and SQL."""
    lines = [f"# {pack.name}", "", f"**{pack.question}**", "", *_paragraphs(pack.description)]
    arguments = next((example for example in pack.examples if not example.startswith("'")), "")
    words = [pack.name, REPORT_TRACES.get(pack.name, "decode_eager.sqlite"), arguments, "--limit 8"]
    command = " ".join(["nsys-insight", *filter(None, words)])
    lines += ["## Example", "", "```console", f"$ {command}", console(command, SITE_COLUMNS).rstrip(), "```", ""]
    lines += ["## How to read it", "", *_paragraphs(pack.reading)]
    if pack.params:
        lines += ["## Options", "", "In addition to the options of all reports:", ""]
        lines += ["| option | what it does |", "|---|---|"]
        lines += [f"| `{param.flag}` | {_cell(param.help)} |" for param in pack.params.values()]
        lines.append("")
    lines += ["## Columns", "", "| column | meaning |", "|---|---|"]
    lines += [f"| `{name}` | {_cell(text)} |" for name, text in pack.columns.items()]
    if pack.aliases:
        names = ", ".join(f"`{alias}`" for alias in pack.aliases)
        lines += ["", f"`nsys stats` calls it {names}. These names work as well."]
    lines += ["", "## SQL", "", f"`queries/reports/{pack.name}.sql`", "", "```sql", pack.sql.strip(), "```", ""]
    return "\n".join(lines)


def _paragraphs(text: str) -> list[str]:
    return [" ".join(text.split()), ""] if text.strip() else []


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def command_page(title: str, *words: str) -> str:
    """Return a page that shows the output of `nsys-insight help`."""
    return f"# {title}\n\n```text\n{console(shlex.join(['nsys-insight', 'help', *words]), SITE_COLUMNS)}```\n"


def site_pages() -> dict[str, str]:
    """Return the pages that only the site has, by path in docs, except those of reports and commands."""
    return {
        "model.md": model_page(),
        "facts.md": facts_page(),
        "findings/index.md": findings_page(),
        **{f"findings/{code}.md": page for code, page in finding_pages().items()},
        "ncu/rules.md": rules_page(),
        **{f"ncu/{name}.md": ncu_report(name, *flags) for name, flags in NCU_REPORTS.items()},
        "reports.md": reports_page(linked=True),
    }


def write_site(folder: Path) -> None:
    """Write the pages of the site into a folder, which is emptied first. Zensical builds the site from it."""
    from nsys_insight.cli.commands import read_help_entries
    from nsys_insight.packs.library import packs_by_topic

    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for path in (path for name in SITE_FILES for path in ROOT.glob(name)):
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    pages = site_pages()
    pages["commands/index.md"] = command_page("Commands", "--all")
    commands = [name for name, entry in read_help_entries().items() if entry.group]
    pages |= {f"commands/{name}.md": command_page(name, name, "--all") for name in commands}
    topics = packs_by_topic()
    pages |= {f"reports/{pack.name}.md": report_page(pack) for packs in topics.values() for pack in packs}
    # SUMMARY.md is the navigation in its folder.
    pages["reports/SUMMARY.md"] = "".join(
        f"* {topic.title}\n" + "".join(f"    * [{pack.name}]({pack.name}.md)\n" for pack in packs)
        for topic, packs in topics.items()
    )
    for name, text in pages.items():
        page = folder / "docs" / name
        page.parent.mkdir(exist_ok=True)
        page.write_text(text, encoding="utf-8")


def write_documents() -> None:
    """Write what is generated in committed documents."""
    from nsys_insight.notebook import methods

    README.write_text(run_blocks(README.read_text(encoding="utf-8"), README_COLUMNS), encoding="utf-8")
    (ROOT / "docs" / "reports.md").write_text(reports_page(), encoding="utf-8")
    for name, columns in PAGES.items():
        page = ROOT / "docs" / f"{name}.md"
        page.write_text(run_blocks(page.read_text(encoding="utf-8"), columns), encoding="utf-8")
    STUB.write_text(methods.write_stub(), encoding="utf-8")
    SKILL_REPORTS.write_text(skill_reports(), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write_site(Path(sys.argv[1]))
    else:
        write_documents()
