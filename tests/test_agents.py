"""What coding agents are given: the skill, and the tools of the Model Context Protocol over stdin and stdout."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import nsys_insight
from nsys_insight.cli.commands import agents as skill
from nsys_insight.cli.commands import help_entries, load_command
from nsys_insight.cli.trace_argument import Traces
from nsys_insight.errors import UsageError
from nsys_insight.packs.library import built_in
from nsys_insight.paths import package_folder

REPOSITORY = Path(__file__).parents[1]
SKILL = package_folder() / "skills" / skill.NAME
CHURN = REPOSITORY / "sample_traces" / "churn.sqlite"


def text_of(name):
    return (SKILL / name).read_text(encoding="utf-8")


def install(*arguments):
    return CliRunner().invoke(skill.app, ["install", *map(str, arguments)])


@pytest.fixture(scope="module")
def opened():
    with nsys_insight.open(CHURN, use_cache=False) as trace:
        yield trace


class TestSkill:
    def test_its_head_is_as_the_format_wants_it(self):
        _, head, body = text_of("SKILL.md").split("---\n", 2)
        keys = dict(re.findall(r"^([a-z-]+): ?(.*)$", head, re.MULTILINE))
        assert set(keys) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
        assert keys["name"] == SKILL.name
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", keys["name"])
        assert 0 < len(keys["description"]) <= 1024
        assert 0 < len(keys["compatibility"]) <= 500
        # Plain YAML scalars: nothing in them begins a mapping or a comment.
        for key in ("description", "compatibility"):
            assert not re.search(r": | #|^[\"'\[{>|*&!%@`]", keys[key])
        assert len(body.splitlines()) < 120
        assert len(body) < 8_000  # some two thousand tokens

    def test_what_it_refers_to_is_there_and_all_of_it_is_referred_to(self):
        linked = set(re.findall(r"\]\((references/[^)]+)\)", text_of("SKILL.md")))
        assert linked | {"SKILL.md"} == set(skill.files())

    def test_it_names_only_commands_that_exist(self):
        text = "".join(content.decode() for content in skill.files().values())
        named = set(re.findall(r"nsys-insight ([a-z][a-z-]+)", text)) - {"command"}
        named |= set(
            re.findall(r"`([a-z][a-z-]+)", text_of("SKILL.md").partition("## Which")[2].partition("## Rules")[0])
        )
        assert named - {*built_in(), *help_entries()} == set()
        assert {"diagnose", "diff", "top", "sql"} <= named

    def test_its_sql_runs_on_views_that_exist(self, opened):
        text = text_of("references/sql.md")
        queries = re.findall(r"^    (SELECT.*?)\n\n", text, re.MULTILINE | re.DOTALL)
        assert len(queries) == 2
        for query in queries:
            assert opened.query(query).row_count > 0
        cells = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
        for view in re.findall(r"`(\w+)`", " ".join(cells)):
            opened.query(f"FROM {view} LIMIT 0")

    def test_it_is_written_and_brought_up_to_date(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert install().exit_code == 0
        target = tmp_path / ".agents/skills/nsys-insight"
        assert {path.relative_to(target).as_posix() for path in target.rglob("*.md")} == set(skill.files())
        # An older one: a file is gone since, and one was different. A file of somebody else stays.
        manifest = json.loads((target / skill.MANIFEST).read_text())
        for name in ("references/gone.md", "references/json.md"):
            (target / name).write_bytes(b"as it was")
            manifest[name] = skill._digest(b"as it was")
        (target / "references/mine.md").write_text("mine")
        (target / skill.MANIFEST).write_text(json.dumps(manifest))
        assert install().exit_code == 0
        assert (target / "references/json.md").read_bytes() == skill.files()["references/json.md"]
        assert not (target / "references/gone.md").exists()
        assert (target / "references/mine.md").exists()
        (tmp_path / ".claude").mkdir()
        assert install().exit_code == 0
        assert (tmp_path / ".claude/skills/nsys-insight/SKILL.md").is_file()

    def test_what_somebody_else_wrote_is_left_unless_forced(self, tmp_path):
        target = tmp_path / skill.NAME
        target.mkdir()
        (target / "SKILL.md").write_text("somebody else's")
        refused = install(tmp_path).exception
        assert isinstance(refused, UsageError)
        assert "--force" in refused.hint
        assert [path.name for path in target.iterdir()] == ["SKILL.md"]  # nothing is half installed
        assert install(tmp_path, "--force").exit_code == 0
        with (target / "SKILL.md").open("a") as stream:
            stream.write("changed by hand")
        assert isinstance(install(tmp_path).exception, UsageError)

    def test_no_link_and_no_manifest_leads_out_of_its_folder(self, tmp_path):
        elsewhere, target = tmp_path / "elsewhere", tmp_path / "skills" / skill.NAME
        elsewhere.mkdir()
        target.mkdir(parents=True)
        (elsewhere / "notes.md").write_text("secret")
        (target / "references").symlink_to(elsewhere)
        assert isinstance(install(tmp_path / "skills", "--force").exception, UsageError)
        (target / "references").unlink()
        names = ["../../elsewhere/notes.md", str(elsewhere / "notes.md")]
        (target / skill.MANIFEST).write_text(json.dumps(dict.fromkeys(names, skill._digest(b"secret"))))
        assert install(tmp_path / "skills").exit_code == 0
        assert [path.name for path in elsewhere.iterdir()] == ["notes.md"]


class TestTraces:
    def test_a_trace_is_found_by_its_path_or_its_name_below_a_folder(self, tmp_path):
        (tmp_path / "run").mkdir()
        file = Path(shutil.copy(CHURN, tmp_path / "run" / "a.sqlite"))
        traces = Traces([tmp_path])
        assert traces.find("run/a.sqlite") == traces.find(str(file)) == file
        assert Traces([file]).find(None) == Traces([file]).find("a.sqlite") == file
        with pytest.raises(UsageError, match="unclear which") as refused:
            Traces([CHURN.parent]).find(None)
        assert "churn" in refused.value.hint

    def test_nothing_else_is(self, tmp_path):
        inside, outside = tmp_path / "inside", tmp_path / "outside"
        parquet = inside / "tables_pqtdir"
        outside.mkdir()
        parquet.mkdir(parents=True)
        other = Path(shutil.copy(CHURN, outside / "other.sqlite"))
        (inside / "link.sqlite").symlink_to(other)
        (inside / "folder").symlink_to(outside)
        (parquet / "StringIds.parquet").symlink_to(other)
        traces = Traces([inside])
        for asked in (
            str(other), "../outside/other.sqlite", "link.sqlite", "folder/other.sqlite", "tables_pqtdir", "/etc/passwd",
            ".", "none.sqlite", "nul\0byte", "~/x.sqlite", "x" * 5000,
        ):  # fmt: skip
            with pytest.raises(UsageError):
                traces.find(asked)
        with pytest.raises(UsageError, match="does not exist"):
            Traces([tmp_path / "none"])


def ask(folder, questions, cache):
    """Start the server on a folder as a client does, and ask it; give the names of its tools and what they answered."""
    mcp = pytest.importorskip("mcp")
    places = {"PYTHONPATH": str(REPOSITORY), "NSYS_INSIGHT_CACHE_DIR": str(cache), "TMPDIR": str(cache.parent)}
    command = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "nsys_insight", "mcp", str(folder)], env={**os.environ, **places}
    )

    async def asked():
        async with mcp.Client(command) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            return tools, [await client.call_tool(*question) for question in questions]

    return asyncio.run(asked())


def test_a_client_of_the_protocol_gets_the_answers_of_the_command_line_and_no_file_is_written(tmp_path, opened):
    folder, cache = tmp_path / "traces", tmp_path / "temporary" / "cache"
    folder.mkdir()
    cache.parent.mkdir()
    shutil.copy(CHURN, folder)
    other = Path(shutil.copy(CHURN, tmp_path / "other.sqlite"))
    written = tmp_path / "x.csv"
    questions = [
        ("diagnose", {}),
        ("report", {"name": "top", "params": {"group_by": "family"}, "limit": 2}),
        ("sql", {"query": "SELECT count(*) AS kernels FROM kernels", "trace": "churn.sqlite"}),
        ("diff", {"before": "churn.sqlite", "after": "churn.sqlite"}),
        ("sql", {"query": f"COPY (FROM kernels) TO '{written}'"}),
        ("sql", {"query": f"SELECT * FROM sqlite_scan('{other}', 'StringIds')"}),
        ("sql", {"query": "SELECT * FROM read_text('/etc/passwd')"}),
        ("report", {"name": "top", "trace": str(other)}),
        ("report", {"name": "../mine.sql"}),
        ("report", {"name": "top", "params": {"report": "info"}}),
    ]
    tools, (diagnosis, top, sql, diff, *refused) = ask(folder, questions, cache)
    assert tools == ["diagnose", "report", "sql", "diff"]
    said = [json.loads(answer.content[0].text) for answer in (diagnosis, top, sql, diff)]
    assert said[0]["summary"]["verdict"] == opened.diagnose().verdict
    assert said[1]["row_count"] == opened.answer("top", group_by="family").row_count
    assert len(said[1]["rows"]) == 2
    assert said[2]["rows"] == [{"kernels": opened.query("FROM kernels").row_count}]
    assert said[3]["rows"][0]["verdict"] == "indistinguishable"
    for answer in refused:
        assert answer.is_error
        error = json.loads(answer.content[0].text)["error"]
        assert error["message"]
        assert error["hint"]
    assert [path.name for path in folder.iterdir()] == ["churn.sqlite"]
    assert list(cache.parent.iterdir()) == []
    assert not written.exists()


def test_a_server_needs_to_know_what_may_be_asked():
    with pytest.raises(UsageError, match="name a trace or a folder"):
        load_command("mcp").make()()
