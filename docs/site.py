"""Add pages to the site: generated pages, one for each report and finding, and the documents at the repository's root.

MkDocs calls the functions whose names begin with `on_` (its hooks). In the repository, links between documents are
paths in the repository. They are rewritten here for the site.
"""

from __future__ import annotations

import re
import runpy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

    from nsys_insight.packs.library import Topic
    from nsys_insight.packs.pack import Pack

ROOT = Path(__file__).resolve().parent.parent
# Documents at the repository's root, with their names on the site.
_ROOT_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "sample_traces/README.md": "samples.md",
    "LICENSE": "license.md",
}
# Traces for reports that are empty on the trace of the README's examples. Paths are relative to sample_traces.
_TRACES = {
    "ranks": "../tests/data/ranks/*rank*.sqlite",
    "collectives": "../tests/data/ranks/*rank*.sqlite",
    "cpu-work": "../tests/data/chains/decode_cpu.sqlite",
    "mallocs": "churn.sqlite",
    "copies": "churn.sqlite",
}
_COLUMNS = 100  # the width of a page


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the reports by topic in the navigation."""
    from nsys_insight.packs.library import packs_by_topic

    topics = [{topic.title: [f"reports/{pack.name}.md" for pack in packs]} for topic, packs in packs_by_topic().items()]
    rules = [f"findings/{rule.code}.md" for rule in _generate("finding_rules")()]
    lists = {
        "Reports": ["reports/index.md", *topics],
        "Findings": ["findings.md", *rules],
        "Commands": ["commands/index.md", *(f"commands/{name}.md" for name in _list_commands())],
    }
    config.nav = [_fill_entry(entry, lists) for entry in config.nav or []]
    return config


def _generate(function: str) -> Any:
    """Return a function of docs/generate.py."""
    return runpy.run_path(str(ROOT / "docs" / "generate.py"))[function]


def _fill_entry(entry: Any, lists: dict[str, list[Any]]) -> Any:
    """Replace an entry of the navigation by the list of its pages, also in a section."""
    ((title, value),) = entry.items()
    if isinstance(value, list):
        return {title: [_fill_entry(inner_entry, lists) for inner_entry in value]}
    return {title: lists.get(title, value)}


def _list_commands() -> list[str]:
    """List the commands that are not reports."""
    from nsys_insight.cli.commands import read_help_entries

    return [name for name, entry in read_help_entries().items() if entry.group]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not files in docs."""
    from nsys_insight.packs.library import packs_by_topic

    console = partial(_generate("console"), columns=_COLUMNS)
    for name, text in _generate("site_pages")().items():
        files.append(File.generated(config, name, content=text))
    for path, name in _ROOT_PAGES.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=_from_root(text, Path(path).parent)))
    topics = packs_by_topic()
    files.append(File.generated(config, "reports/index.md", content=_index(topics)))
    files.append(
        File.generated(config, "commands/index.md", content=_commands("all", console("nsys-insight help --all")))
    )
    for name in _list_commands():
        content = _commands(name, console(f"nsys-insight help {name} --all"))
        files.append(File.generated(config, f"commands/{name}.md", content=content))
    for packs in topics.values():
        for pack in packs:
            files.append(File.generated(config, f"reports/{pack.name}.md", content=_report(pack, console)))
    return files


def _commands(name: str, help_text: str) -> str:
    """Return the page with the help of a command, or the list of all commands."""
    lines = "".join(f"    {line}\n" for line in help_text.splitlines())
    return f"# {'Commands' if name == 'all' else name}\n\n{lines}"


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite the links from a document in docs to documents at the root."""
    del config, files
    root_prefix = "../" * (page.file.src_uri.count("/") + 1)
    for path, name in _ROOT_PAGES.items():
        markdown = markdown.replace(f"]({root_prefix}{path}", f"]({root_prefix[3:]}{name}")
    return markdown


def _from_root(text: str, folder: Path) -> str:
    """Rewrite the links of a document at the root, to other documents there and into docs."""

    def rewrite_link(match: re.Match[str]) -> str:
        path, anchor = match[1], match[2] or ""
        path = (folder / path).as_posix()
        if path in _ROOT_PAGES:
            return f"]({_ROOT_PAGES[path]}{anchor})"
        if path == "docs/reports.md":
            return f"](reports/index.md{anchor})"
        return f"]({path.removeprefix('docs/')}{anchor})"

    text = text.replace('="docs/images/', '="images/')
    return re.sub(r"\]\((?![a-z]+:|#)([^)#]+)(#[^)]*)?\)", rewrite_link, text)


def _index(topics: dict[Topic, list[Pack]]) -> str:
    lines = ["# Reports", "", "Each report is one command and one SQL file.", ""]
    for topic, packs in topics.items():
        lines += [f"## {topic.title}", "", topic.summary, "", "| report | question |", "|---|---|"]
        lines += [f"| [`{pack.name}`]({pack.name}.md) | {pack.question} |" for pack in packs]
        lines.append("")
    return "\n".join(lines)


def _report(pack: Pack, console: partial[str]) -> str:
    lines = [f"# {pack.name}", "", f"**{pack.question}**", "", *_paragraphs(pack.description)]
    arguments = next(
        (example for example in pack.examples if not example.startswith("'")), ""
    )  # the site has its own traces
    words = [pack.name, _TRACES.get(pack.name, "decode_eager.sqlite"), arguments, "--limit 8"]
    command = " ".join(["nsys-insight", *filter(None, words)])
    lines += ["## Example", "", "```console", f"$ {command}", console(command).rstrip(), "```", ""]
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
