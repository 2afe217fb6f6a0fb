"""What coding agents use: the skill, and the tools of the Model Context Protocol over stdin and stdout."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest
from kept_connections import keep_connections
from opening import open_trace, read_headline_of
from typer.testing import CliRunner

from nsys_insight.cli.commands import agents as skill
from nsys_insight.cli.commands import load_command, read_help_entries
from nsys_insight.cli.trace_argument import Traces
from nsys_insight.errors import InsightError, UsageError
from nsys_insight.packs.library import built_in_packs
from nsys_insight.paths import package_folder

REPOSITORY = Path(__file__).parents[1]
SKILL = package_folder() / "skills" / skill.SKILL_NAME
CHURN = REPOSITORY / "sample_traces" / "churn.sqlite"


def read_skill_file(name):
    return (SKILL / name).read_text(encoding="utf-8")


def install(*arguments):
    return CliRunner().invoke(skill.app, ["install", *map(str, arguments)])


@pytest.fixture(scope="module")
def churn_trace():
    with open_trace(CHURN) as trace:
        yield trace


class TestSkill:
    def test_its_header_is_valid(self):
        _, head, body = read_skill_file("SKILL.md").split("---\n", 2)
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

    def test_its_links_exist_and_reach_all_its_files(self):
        linked = set(re.findall(r"\]\((references/[^)]+)\)", read_skill_file("SKILL.md")))
        assert linked | {"SKILL.md"} == set(skill.read_skill_files())

    def test_it_names_only_commands_that_exist(self):
        text = "".join(content.decode() for content in skill.read_skill_files().values())
        command_names = set(re.findall(r"nsys-insight ([a-z][a-z-]+)", text)) - {"command"}
        command_names |= set(
            re.findall(
                r"`([a-z][a-z-]+)", read_skill_file("SKILL.md").partition("## Which")[2].partition("## Rules")[0]
            )
        )
        assert command_names - {*built_in_packs(), *read_help_entries()} == set()
        assert {"diagnose", "diff", "top", "sql"} <= command_names

    def test_its_sql_runs_on_views_that_exist(self, churn_trace):
        text = read_skill_file("references/sql.md")
        queries = re.findall(r"^    (SELECT.*?)\n\n", text, re.MULTILINE | re.DOTALL)
        assert len(queries) == 2
        for query in queries:
            assert churn_trace.query(query).row_count > 0
        cells = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
        for view in re.findall(r"`(\w+)`", " ".join(cells)):
            churn_trace.query(f"FROM {view} LIMIT 0")

    def test_install_writes_and_updates_it(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert install().exit_code == 0
        target = tmp_path / ".agents/skills/nsys-insight"
        assert {path.relative_to(target).as_posix() for path in target.rglob("*.md")} == set(skill.read_skill_files())
        # Update an older version: one file no longer exists, one was different, and one file belongs to somebody else.
        manifest = json.loads((target / skill.MANIFEST).read_text())
        for name in ("references/gone.md", "references/json.md"):
            (target / name).write_bytes(b"as it was")
            manifest[name] = skill._hash_content(b"as it was")
        (target / "references/mine.md").write_text("mine")
        (target / skill.MANIFEST).write_text(json.dumps(manifest))
        assert install().exit_code == 0
        assert (target / "references/json.md").read_bytes() == skill.read_skill_files()["references/json.md"]
        assert not (target / "references/gone.md").exists()
        assert (target / "references/mine.md").exists()
        (tmp_path / ".claude").mkdir()
        assert install().exit_code == 0
        assert (tmp_path / ".claude/skills/nsys-insight/SKILL.md").is_file()

    def test_install_keeps_files_of_others_unless_forced(self, tmp_path):
        target = tmp_path / skill.SKILL_NAME
        target.mkdir()
        (target / "SKILL.md").write_text("somebody else's")
        error = install(tmp_path).exception
        assert isinstance(error, UsageError)
        assert "--force" in error.hint
        assert [path.name for path in target.iterdir()] == ["SKILL.md"]  # nothing is half installed
        assert install(tmp_path, "--force").exit_code == 0
        with (target / "SKILL.md").open("a") as stream:
            stream.write("changed by hand")
        assert isinstance(install(tmp_path).exception, UsageError)

    def test_links_and_manifests_cannot_leave_its_folder(self, tmp_path):
        elsewhere, target = tmp_path / "elsewhere", tmp_path / "skills" / skill.SKILL_NAME
        elsewhere.mkdir()
        target.mkdir(parents=True)
        (elsewhere / "notes.md").write_text("secret")
        (target / "references").symlink_to(elsewhere)
        assert isinstance(install(tmp_path / "skills", "--force").exception, UsageError)
        (target / "references").unlink()
        names = ["../../elsewhere/notes.md", str(elsewhere / "notes.md")]
        (target / skill.MANIFEST).write_text(json.dumps(dict.fromkeys(names, skill._hash_content(b"secret"))))
        assert install(tmp_path / "skills").exit_code == 0
        assert [path.name for path in elsewhere.iterdir()] == ["notes.md"]

    def test_it_can_be_read_without_installing_it(self):
        result = CliRunner().invoke(skill.app, ["show"])
        assert result.stdout == read_skill_file("SKILL.md").rstrip() + "\n"
        assert "references/sql.md" in CliRunner().invoke(skill.app, ["show", "none.md"]).exception.hint


class TestTraces:
    def test_a_trace_is_found_by_its_path_or_its_name_below_a_folder(self, tmp_path):
        (tmp_path / "run").mkdir()
        file = Path(shutil.copy(CHURN, tmp_path / "run" / "a.sqlite"))
        traces = Traces([tmp_path])
        assert traces.find("run/a.sqlite") == traces.find(str(file)) == file
        assert Traces([file]).find(None) == Traces([file]).find("a.sqlite") == file
        with pytest.raises(UsageError, match="unclear which") as error_info:
            Traces([CHURN.parent]).find(None)
        assert "churn" in error_info.value.hint

    def test_the_suffix_may_be_left_out_and_the_nearest_name_is_suggested(self, tmp_path):
        files = [Path(shutil.copy(CHURN, tmp_path / f"{name}.sqlite")) for name in ("decode_eager", "churn")]
        assert Traces([tmp_path]).find("decode_eager") == Traces(files).find("decode_eager") == files[0]
        with pytest.raises(UsageError) as error_info:
            Traces([tmp_path]).find("decode_eagr")
        assert error_info.value.hint.startswith("did you mean decode_eager? traces: ")
        files[0].with_suffix(".nsys-rep").write_bytes(b"")  # of the same trace: it replaces the export
        shutil.copy(CHURN, tmp_path / "run.2.sqlite")
        assert Traces([tmp_path]).find("run.2").name == "run.2.sqlite"

    def test_no_other_trace_is_found(self, tmp_path):
        allowed_folder, outside_folder = tmp_path / "inside", tmp_path / "outside"
        parquet = allowed_folder / "tables_pqtdir"
        outside_folder.mkdir()
        parquet.mkdir(parents=True)
        other = Path(shutil.copy(CHURN, outside_folder / "other.sqlite"))
        (allowed_folder / "link.sqlite").symlink_to(other)
        (allowed_folder / "folder").symlink_to(outside_folder)
        (parquet / "StringIds.parquet").symlink_to(other)
        traces = Traces([allowed_folder])
        for name in (
            str(other), "../outside/other.sqlite", "link.sqlite", "folder/other.sqlite", "tables_pqtdir", "/etc/passwd",
            ".", "none.sqlite", "nul\0byte", "~/x.sqlite", "x" * 5000,
        ):  # fmt: skip
            with pytest.raises(UsageError):
                traces.find(name)
        with pytest.raises(UsageError, match="does not exist"):
            Traces([tmp_path / "none"])


def ask(folder, questions, cache):
    """Start the server on a folder as a client does; return its tools and the answers to the questions."""
    mcp = pytest.importorskip("mcp")
    environment = {"PYTHONPATH": str(REPOSITORY), "NSYS_INSIGHT_CACHE_DIR": str(cache), "TMPDIR": str(cache.parent)}
    command = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "nsys_insight", "mcp", str(folder)], env={**os.environ, **environment}
    )

    async def ask_server():
        async with mcp.Client(command) as client:
            tools = (await client.list_tools()).tools
            return tools, [await client.call_tool(*question) for question in questions]

    return asyncio.run(ask_server())


def test_a_client_gets_the_answers_of_the_command_line_and_writes_no_file(tmp_path, churn_trace):
    folder, cache = tmp_path / "traces", tmp_path / "temporary" / "cache"
    folder.mkdir()
    cache.parent.mkdir()
    shutil.copy(CHURN, folder)
    other = Path(shutil.copy(CHURN, tmp_path / "other.sqlite"))
    output_file = tmp_path / "x.csv"
    questions = [
        ("report", {"name": "top", "params": {"group_by": "family"}, "limit": 2}),
        ("sql", {"query": "SELECT count(*) AS kernels FROM kernels", "trace": "churn.sqlite"}),
        ("sql", {"query": f"COPY (FROM kernels) TO '{output_file}'"}),
        ("sql", {"query": f"SELECT * FROM sqlite_scan('{other}', 'StringIds')"}),
        ("sql", {"query": "SELECT * FROM read_text('/etc/passwd')"}),
        ("report", {"name": "top", "trace": str(other)}),
        ("report", {"name": "../mine.sql"}),
        ("report", {"name": "top", "params": {"report": "info"}}),
    ]
    texts = [
        ("views", {}),
        ("sql", {"query": "SELECT 1 AS a; CREATE TEMP TABLE t AS FROM gpus; SELECT count(*) AS b FROM t"}),
    ]
    tools, (views, two_results, *answers) = ask(folder, texts + questions, cache)
    answers, refused_answers = answers[:2], answers[2:]
    assert [tool.name for tool in tools] == ["brief", "diagnose", "report", "sql", "views", "diff"]
    assert 1_000 < len(views.content[0].text) <= 3_000
    assert [(result["query"], result["rows"]) for result in two_results.structured_content["answers"]] == [
        ("1 of 2: SELECT 1 AS a", [[1]]),
        ("2 of 2: SELECT count(*) AS b FROM t", [[1]]),
    ]
    schemas = {tool.name: tool.output_schema for tool in tools}
    assert {name for name, schema in schemas.items() if schema} == {"diagnose", "report", "sql", "diff"}
    top, sql = (answer.structured_content["answers"][0] for answer in answers)
    for (name, _), answer in zip(questions, answers, strict=False):
        jsonschema.validate(answer.structured_content, schemas[name])
    assert top["row_count"] == churn_trace.answer("top", group_by="family").row_count
    assert len(top["rows"]) == 2
    assert sql["rows"] == [[churn_trace.query("FROM kernels").row_count]]
    for answer in refused_answers:
        assert answer.is_error
        error = json.loads(answer.content[0].text)["error"]
        assert error["message"]
        assert error["hint"]
    assert [path.name for path in folder.iterdir()] == ["churn.sqlite"]
    assert list(cache.parent.iterdir()) == []
    assert not output_file.exists()


def test_a_question_that_runs_when_stdin_ends_is_answered(tmp_path):
    pytest.importorskip("mcp")
    messages = [
        {"id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "sql", "arguments": {"query": "FROM gpus"}}},
        # The client does not wait for this one.
        {"id": 3, "method": "tools/call", "params": {"name": "views", "arguments": {}}},
        {"method": "notifications/cancelled", "params": {"requestId": 3}},
    ]  # fmt: skip
    result = subprocess.run(
        [sys.executable, "-m", "nsys_insight", "mcp", str(CHURN)], check=True, capture_output=True, text=True,
        input="".join(json.dumps({"jsonrpc": "2.0"} | message) + "\n" for message in messages),
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "NSYS_INSIGHT_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    answers = {answer["id"]: answer for answer in map(json.loads, result.stdout.splitlines())}
    assert "error" not in answers[1]
    assert answers[2]["result"]["structuredContent"]["answers"][0]["row_count"] == 1


def test_a_server_needs_a_trace_or_a_folder():
    with pytest.raises(UsageError, match="name a trace or a folder"):
        load_command("mcp").make()()


@pytest.fixture
def tools(tmp_path):
    """The tools of a server on a copy of two samples."""
    pytest.importorskip("mcp")
    from nsys_insight.cli.mcp_server import Tools
    from nsys_insight.cli.trace_pool import TracePool

    for name in ("churn", "decode_eager"):
        shutil.copy(CHURN.with_stem(name), tmp_path)
    with TracePool(60) as trace_pool:
        yield Tools(Traces([tmp_path]), trace_pool)


@pytest.fixture
def sample_tools():
    """The tools of a server on the samples, whose answers tests share."""
    pytest.importorskip("mcp")
    from nsys_insight.cli.mcp_server import Tools
    from nsys_insight.cli.trace_pool import TracePool

    with keep_connections(), TracePool(None) as trace_pool:
        yield Tools(Traces([CHURN.parent]), trace_pool)


def test_diagnoses_and_differences_are_short_and_fit_their_schemas(sample_tools):
    from nsys_insight.cli.mcp_server import make_server

    server = make_server(sample_tools)
    trace = {"trace": "decode_eager"}

    async def ask_tools():
        schemas = {tool.name: tool.output_schema for tool in await server.list_tools()}
        questions = [("brief", trace), ("diagnose", trace), ("diagnose", {"full": True, **trace})]
        questions.append(("diff", {"before": "decode_eager", "after": "decode_eager"}))
        return schemas, [await server.call_tool(*question) for question in questions]

    schemas, (brief, short_diagnosis, full_diagnosis, diff) = asyncio.run(ask_tools())
    for answer, max_chars in ((brief, 2_000), (short_diagnosis, 3_000)):
        assert 1_000 < len(answer.content[0].text) <= max_chars
    jsonschema.validate(full_diagnosis.structured_content, schemas["diagnose"])
    jsonschema.validate(diff.structured_content, schemas["diff"])
    with open_trace(CHURN.with_stem("decode_eager")) as opened_trace:
        verdict = read_headline_of(opened_trace).verdict
    assert full_diagnosis.structured_content["answers"][0]["summary"]["verdict"] == verdict
    (difference,) = diff.structured_content["answers"]
    assert difference["rows"][0][difference["columns"].index("verdict")] == "indistinguishable"


def count_characters(result):
    return len(result.content[0].text) + len(json.dumps(result.structured_content))


def test_answers_and_the_list_of_tools_are_short(sample_tools):
    from nsys_insight.cli.mcp_server import make_server

    schemas = asyncio.run(make_server(sample_tools).list_tools())
    assert sum(len(tool.model_dump_json(exclude_none=True)) for tool in schemas) < 8_000  # from 14,620
    # Half of what the text alone was.
    for name, limit in (("top", 9_170), ("gaps", 13_990), ("fusion", 8_460)):
        result = sample_tools.report(name, "decode_eager")
        assert 1_000 < count_characters(result) < limit
        assert len(result.structured_content["answers"][0]["rows"]) <= 20
    full_table = sample_tools.report("top", "decode_eager", full=True).structured_content["answers"][0]
    assert any("void at::native" in cell for row in full_table["rows"] for cell in row if type(cell) is str)
    assert "p99_ns" in full_table["columns"]


def test_the_second_question_finds_the_trace_open(tools, tmp_path):
    tools.report("idle", "decode_eager")
    start_s = time.process_time()
    for name in ("idle", "top"):
        tools.report(name, "decode_eager")
    assert time.process_time() - start_s < 0.6
    count = "SELECT count(*) AS kernels FROM kernels"
    kernels = tools.sql(count, "decode_eager").structured_content
    shutil.copy(CHURN, tmp_path / "decode_eager.sqlite")
    assert tools.sql(count, "decode_eager").structured_content != kernels
    tools.sql("CREATE TEMP TABLE mine AS FROM gpus; FROM mine", "churn")
    with pytest.raises(InsightError):
        tools.sql("FROM mine", "churn")
    for step in range(2):
        tools.report("top", "churn", scope={"step": step})
    assert len(tools._trace_pool._open) == 3


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ({"scope": {"stp": 1}}, "scope has no 'stp'", "did you mean step?"),
        ({"scope": {"where": 1}}, "scope has no 'where'", "it takes nvtx, phase, steady"),
        ({"scope": {"step": "one"}}, "scope.step cannot be 'one'", "it should be a valid integer"),
        ({"scope": {"nvtx": "a", "phase": "b"}}, "scope.nvtx and scope.phase both name ranges", "give one of them"),
        ({"scope": {"device": 7}}, "there is no device 7 in the trace", "there is 0"),
        ({"limit": 0}, "limit cannot be 0", "it should be greater than or equal to 1"),
        ({"full": "maybe"}, "full cannot be 'maybe'", "it should be a valid boolean"),
        ({"limt": 3}, "report has no argument 'limt'", "did you mean limit?"),
    ],
)
def test_arguments_that_cannot_be_are_one_sentence_with_a_hint(tools, arguments, message, hint):
    from nsys_insight.cli.mcp_server import make_server

    arguments = {"name": "top", "trace": "churn", **arguments}
    result = asyncio.run(make_server(tools).call_tool("report", arguments))
    assert result.is_error
    error = json.loads(result.content[0].text)["error"]
    assert error["message"] == message
    assert error["hint"].startswith(hint)


def test_texts_are_in_the_terms_of_the_tools(sample_tools):
    from nsys_insight.cli.mcp_answers import name_arguments
    from nsys_insight.ingest.scope import Scope

    own_flags = {param.flag for pack in built_in_packs().values() for param in pack.params.values()}
    own_flags |= {f"--{name.removesuffix('_ns')}" for name in vars(Scope())}
    reports = ("gaps", "per-token", "host", "launches", "top")
    results = [sample_tools.report(name, "decode_eager") for name in reports]
    text = "".join(result.content[0].text + str(result.structured_content) for result in results)
    text += sample_tools.brief("decode_eager") + sample_tools.diagnose("decode_eager").content[0].text
    assert own_flags.isdisjoint(re.findall(r"--[a-z-]+", text))
    assert not re.search(r"nsys-insight (top|gaps|idle|host|sql|diff)", text)
    command = "nsys profile --trace cuda --nvtx-capture x; nsys-insight gaps --min-gap 5us --nvtx 'a'"
    result = "nsys profile --trace cuda --nvtx-capture x; report gaps min_gap_ns 5us scope.nvtx 'a'"
    assert name_arguments(command) == result
