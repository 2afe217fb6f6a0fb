"""A pack of the user is a command like any other, and an invalid pack does not affect the others."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import command_line
import pytest

import nsys_insight
from nsys_insight.cli.commands import packs
from nsys_insight.packs import library
from nsys_insight.session import pack_check

REPOSITORY = Path(__file__).parents[1]
CHURN = str(REPOSITORY / "sample_traces" / "churn.sqlite")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NSYS_INSIGHT_PACK_DIR", str(tmp_path))
    library.user_packs.cache_clear()
    yield tmp_path
    library.user_packs.cache_clear()


def run(*arguments):
    return command_line.run(*arguments, cwd=REPOSITORY, env={"COLUMNS": "120"})


def test_a_new_pack_is_a_valid_command_with_flags_and_help(folder):
    assert run("packs", "new", "hot").stdout == f"{folder / 'hot.sql'}\n"
    assert run("packs", "check", "hot").stdout == "hot.sql: OK\n"
    rows = run("hot", CHURN, "--least", "30", "--format", "csv").stdout.splitlines()
    assert rows[0] == "name,calls,total_ns"
    assert len(rows) == 4
    assert "--least" in run("hot", "--help").stdout
    assert "hot" in run("--help").stdout
    assert str(folder / "hot.sql") in run("packs", "--format", "csv").stdout
    assert "GROUP BY ALL" in run("packs", "show", "hot").stdout
    again = run("packs", "new", "hot")
    assert (again.returncode, "exists already" in again.stderr) == (2, True)
    with nsys_insight.open(CHURN) as trace:
        assert trace.hot(least=30).height == trace.run(str(folder / "hot.sql"), least=30).height == 3


NOTE = """[notes.most]
text = "{name} runs {calls:time}<, {share_pct} of the time>"
query = "SELECT name, calls, NULL AS share_pct FROM answer LIMIT 1"
*/"""


@pytest.mark.parametrize(
    ("note", "problem"),
    [
        (NOTE, ""),
        (
            NOTE.replace("{name}", "{kernel}"),
            "the text of the note 'most' names kernel, which its query does not return",
        ),
        (NOTE.replace("query = ", "use = "), "notes.most.use cannot be 'SELECT name, calls, NULL AS share_pct FROM"),
        (NOTE.replace("text = ", "# text = "), "notes.most lacks 'text'"),
        ('[notes]\nmost = "SELECT 1"\n*/', "notes.most should be a table"),
    ],
)
def test_a_note_is_a_text_and_a_query(folder, note, problem):
    (folder / "mine.sql").write_text(packs.TEMPLATE.replace("{title}", "T").replace("*/", note, 1))
    checked = run("packs", "check", "mine").stdout if not problem else run("packs", "check", str(folder / "mine.sql"))
    if problem:
        assert problem in checked.stdout + checked.stderr
        return
    assert checked == "mine.sql: OK\n"
    with nsys_insight.open(CHURN) as trace:
        answer = trace.answer("mine", least=30)
        name, calls, *_ = answer.rows()[0]
    assert answer.notes == (f"{name} runs {calls:,} times",)


@pytest.mark.parametrize("name", ["limit", "nvtx", "traces", "output", "tokens"])
def test_a_parameter_with_a_name_that_every_report_takes_is_an_error(folder, name):
    text = packs.TEMPLATE.replace("{title}", "T").replace("least", name)
    (folder / "mine.sql").write_text(text.replace("FROM kernels", "FROM kernels, (SELECT max(step) FROM steps)"))
    refused = run("mine", CHURN)
    assert (refused.returncode, refused.stderr.splitlines()) == (
        2,
        [
            f"error: this report has a parameter {name}, and every report takes this name",
            f"hint: rename [params.{name}] and ${name} in its file",
        ],
    )


@pytest.mark.parametrize("name", ["report", "steps", "ranks", "tokens"])
def test_a_parameter_that_python_could_not_pass_is_a_problem(tmp_path, name):
    text = packs.TEMPLATE.replace("{title}", "T").replace("least", name)
    path = tmp_path / "mine.sql"
    path.write_text(text.replace("FROM kernels", "FROM kernels, (SELECT max(step) FROM steps)"))
    (problem,) = (text for text in pack_check.find_problems(path) if "needs another name" in text)
    assert name in problem


@pytest.mark.slow
def test_a_file_runs_without_being_installed(tmp_path):
    path = tmp_path / "mine.sql"
    path.write_text(packs.TEMPLATE.replace("{title}", "Mine"))
    result = run("run", path, CHURN, "--least", "100", "-f", "csv")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("\n") == 4
    assert "--least" in run("run", path, "--help").stdout
    assert run("run", "top", CHURN, "-n", "1").stdout == run("top", CHURN, "-n", "1").stdout
    assert run("--pack-dir", tmp_path, "mine", CHURN, "--least", "100", "-f", "csv").stdout == result.stdout
    assert run("mine", CHURN, f"--pack-dir={tmp_path}", "--least", "100", "-f", "csv").stdout == result.stdout


def test_an_invalid_pack_is_reported_and_does_not_affect_others(folder):
    (folder / "broken.sql").write_text("SELECT 1")
    (folder / "top.sql").write_text(
        (REPOSITORY / "queries" / "reports" / "top.sql").read_text(encoding="utf-8"), encoding="utf-8"
    )
    (folder / "Bad Name.sql").write_text(packs.TEMPLATE)
    process = run("packs")
    assert process.returncode == 0
    assert process.stderr.count("is not used") == 3
    assert "1 of 4 rows" in run("top", CHURN, "-n", "1").stdout


@pytest.mark.parametrize("name", sorted(library.command_files()))
def test_every_listed_command_has_help(name):
    process = run(name, "--help")
    assert process.returncode == 0, process.stderr
    assert name == "help" or name in process.stdout.partition("\n\n")[0]  # the usage line


@pytest.fixture(scope="module")
def one_empty_model():
    """Check packs over one empty model, which is locked once."""
    with pytest.MonkeyPatch.context() as patch, pack_check.empty_model() as connection:
        pack_check.sandbox.lock(connection)
        patch.setattr(pack_check, "empty_model", lambda: nullcontext(connection))
        patch.setattr(pack_check.sandbox, "lock", lambda _: None)
        yield


@pytest.mark.usefixtures("one_empty_model")
@pytest.mark.parametrize("pack", library.built_in_packs().values(), ids=library.built_in_packs().keys())
def test_built_in_packs_have_no_problems(pack):
    assert pack_check.find_problems(pack.path) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("/*", "", "does not begin with a header"),
        ('title = "T"', "", "lacks 'title'"),
        ("default = 1", "default", "is not valid"),
        ('name = "The kernel"\n', "", "the column name is not described"),
        ('calls = "How often it ran"', 'count = "x"\ncalls = "y"', "[columns] describes count"),
        ("::BIGINT", "", "total_ns is HUGEINT: cast it to BIGINT"),
        (">= $least", ">= 2", "[params.least] is declared but not used"),
        (">= $least", ">= $least + $most", "$most is used but not declared"),
        ("FROM kernels", "FROM kernel", "there is no view 'kernel'"),
        ("FROM kernels", "FROM read_text('x')", "read_text is not available"),
        ("ORDER BY total_ns DESC, name", "", "no ORDER BY"),
        ("    count(*) AS calls", "    sum(count(*)) OVER ()::BIGINT AS calls", "a window covers all rows"),
        ("    name,", "    nme,", "there is no column 'nme'"),
        ("SELECT\n", "SELECT 1; SELECT\n", "one SELECT"),
    ],
)
def test_check_reports_the_problem(tmp_path, old, new, problem):
    text = packs.TEMPLATE.replace("{title}", "T")
    assert old in text
    path = tmp_path / "mine.sql"
    path.write_text(text.replace(old, new, 1))
    assert any(problem in message for message in pack_check.find_problems(path)), pack_check.find_problems(path)
