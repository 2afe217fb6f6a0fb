"""The commands in the documents run and print what the documents show."""

from __future__ import annotations

import re
import runpy
import shlex
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import pytest
from command_line import run
from kept_connections import keep_connections

import nsys_insight

REPOSITORY = Path(__file__).parents[1]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
GENERATE = runpy.run_path(str(REPOSITORY / "docs" / "generate.py"))
DOCUMENTS_TO_TYPE = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
COMMANDS = re.findall(r"^\$ (.+)$", README, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_readme_prints_what_the_readme_shows(command):
    program, *words = shlex.split(command)
    result = run(*words, cwd=REPOSITORY / "sample_traces", env={"COLUMNS": str(GENERATE["README_COLUMNS"])})
    assert (program, result.returncode) == ("nsys-insight", 0)
    assert f"$ {command}\n{result.stdout}{result.stderr}" in README


@pytest.mark.slow
@pytest.mark.parametrize("name", GENERATE["PAGES"])
def test_the_commands_of_a_page_print_what_it_shows(name):
    page = (REPOSITORY / "docs" / f"{name}.md").read_text(encoding="utf-8")
    assert GENERATE["run_blocks"](page, GENERATE["PAGES"][name]) == page
    assert page.count("```console") >= 4


def test_the_readme_is_short_and_has_commands():
    assert len(COMMANDS) >= 3
    assert README.count("\n") <= 180
    prose = [line for line in README.splitlines() if not line.lstrip().startswith(("|", "$", "<", "note: "))]
    assert max(map(len, prose)) <= 140


def test_ci_runs_the_commands_of_the_readme_that_install_and_test():
    ci = (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8")
    (pattern,) = re.findall(r"sed -n 's/(.*)/\\1/p' README.md", ci)
    commands = re.findall(pattern.replace(r"\(", "(").replace(r"\)", ")"), README, re.MULTILINE)
    assert [("pytest" in command, "install" in command) for command in commands] == [(False, True), (True, True)]


def test_the_pictures_of_the_readme_exist():
    pictures = re.findall(r'(?:src|srcset)="(docs/[^"]+)"', README)
    assert len(pictures) == 2
    assert all((REPOSITORY / picture).is_file() for picture in pictures)


def test_links_of_documents_lead_to_files_of_the_repository():
    pages = [
        *REPOSITORY.glob("*.md"),
        *(REPOSITORY / "docs").rglob("*.md"),
        *(REPOSITORY / "benchmarks").glob("*/*.md"),
    ]
    links = [(page, link) for page in pages for link in re.findall(r"\]\((?!\w+:)([^)#\s]+)", page.read_text("utf-8"))]
    assert len(links) > 80
    assert [(page.name, link) for page, link in links if not (page.parent / link).exists()] == []


def test_python_in_the_readme_runs(monkeypatch):
    monkeypatch.chdir(REPOSITORY / "sample_traces")
    (block,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict[str, object] = {}
    with keep_connections():
        exec(block, names)  # noqa: S102 - our own document
    assert isinstance(names["trace"], nsys_insight.trace.Trace)


def test_the_page_of_reports_is_generated_from_their_headers():
    from nsys_insight.packs.library import built_in_packs

    page = (REPOSITORY / "docs" / "reports.md").read_text(encoding="utf-8")
    assert page == GENERATE["reports_page"]()
    assert {name.partition(" ")[0] for name in re.findall(r"^\| `([^`]+)`", page, re.MULTILINE)} == set(
        built_in_packs()
    )


def test_every_command_in_the_readme_exists():
    from nsys_insight.cli.commands import read_help_entries
    from nsys_insight.packs.library import built_in_packs

    table = README.partition("## What it answers")[2].partition("\n\n[All")[0]
    commands = {name.partition(" ")[0] for name in re.findall(r"`([^`]+)`", table)}
    assert len(commands) > 20
    assert commands <= set(read_help_entries()) | set(built_in_packs())


@pytest.fixture(scope="module")
def describe_schema_once():
    """Describe each view once for all tests and pages that read it, all over one empty model."""
    from nsys_insight.session import schema

    with pytest.MonkeyPatch.context() as patch, schema.empty_model() as connection:
        patch.setattr(schema, "empty_model", lambda: nullcontext(connection))
        patch.setattr(schema, "describe_schema", cache(schema.describe_schema))
        yield schema.describe_schema


def test_the_reports_of_the_skill_are_generated_from_their_headers():
    assert GENERATE["SKILL_REPORTS"].read_text(encoding="utf-8") == GENERATE["skill_reports"]()


def test_every_view_and_every_column_is_documented(describe_schema_once):
    for view, meaning in describe_schema_once().rows():
        assert meaning, view
        assert [column for column, _, _, text in describe_schema_once(view).rows() if not text] == [], view


def test_pages_of_the_site_have_every_view_fact_and_rule(describe_schema_once):
    """They are not committed: `just site` makes them, and CI builds the site."""
    from nsys_insight.model.producers import fact_tables
    from nsys_insight.model.views import documented_views

    for page, names in (
        ("model_page", documented_views(internal=False)), ("facts_page", fact_tables()),
        ("findings_page", [rule.code for rule in GENERATE["finding_rules"]()]),
    ):  # fmt: skip
        text = GENERATE[page]()
        assert [name for name in names if f"`{name}`" not in text and f"[{name}]" not in text] == []
    assert set(GENERATE["finding_pages"]()) == {rule.code for rule in GENERATE["finding_rules"]()}
    committed = {path.name for path in (REPOSITORY / "docs").rglob("*.md")}
    assert not committed & {"model.md", "facts.md", "findings.md", "rules.md"}


def test_no_text_installs_the_package_from_an_index():
    # It is on none. An extra of the installed package, 'nsys-insight[mcp]', needs none.
    for path in (*DOCUMENTS_TO_TYPE, REPOSITORY / "nsys_insight" / "sql" / "parser.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(pip|pipx|uv tool) install ['\"]?nsys-insight(?!\[)", text), path


def test_f_is_nowhere_the_file_with_sql():
    for path in DOCUMENTS_TO_TYPE:
        assert not re.search(r"file\s+(for\s+|\()`-f`", path.read_text(encoding="utf-8")), path
