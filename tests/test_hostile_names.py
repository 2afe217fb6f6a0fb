"""Names are data in every output: whatever a kernel, range, thread or GPU is called, a format says that and no more."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest
from command_line import run
from hostile_names import INJECTION, NAMES, written
from markdown_it import MarkdownIt

import nsys_insight
from nsys_insight.convert.convert import convert
from nsys_insight.diagnose import text as diagnosis_text
from nsys_insight.ncu import plan
from nsys_insight.packs.library import built_in
from nsys_insight.packs.step_options import AUTO
from nsys_insight.page import content, html, markdown
from nsys_insight.page.markdown import DATA
from nsys_insight.render import write
from nsys_insight.render.json_ import plain
from nsys_insight.session.answer import Column, of_rows

REPOSITORY = Path(__file__).parents[1]
REPORTS = [name for name in built_in() if name != "fusion-candidate"]
COLOR = re.compile(r"\x1b\[[\d;]*m")
# As a spreadsheet sees a cell: what begins so is computed.
FORMULA = re.compile(r"[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]")
NUMBER = re.compile(r"-?[\d.]+(e[+-]?\d+)?")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return written(tmp_path_factory.mktemp("hostile") / "hostile.sqlite")


@pytest.fixture(scope="module")
def trace(path):
    with nsys_insight.open(path, use_cache=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def answers(trace):
    return {name: trace.answer(name) for name in REPORTS}


@pytest.fixture(scope="module")
def gathered(trace):
    """What pages are made of."""
    return content.gather(trace, AUTO)


def html_page(trace, gathered):
    return html.page(gathered, html.draw(trace, AUTO, gathered))


def as_text(answer, fmt, **options):
    stream = io.StringIO()
    write(answer, stream, fmt, **options)
    return stream.getvalue()


def is_plain(text):
    return all(line.isprintable() for line in text.split("\n"))


def markup(text):
    """What a Markdown reader sees besides text, code, tables, headings and lists."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    inline = [child for token in tokens for child in token.children or ()]
    return [token for token in (*tokens, *inline) if token.type in ("html_block", "html_inline", "image", "link_open")]


@pytest.mark.slow
def test_the_names_are_in_the_reports(answers):
    """Else the rest would say nothing."""
    names = {row["name"] for row in answers["top"].dicts()}
    known = [name for name in NAMES.values() if isinstance(name, str)]
    assert len(names & set(known)) > len(known) - 5
    assert sum("IGNORE PREVIOUS" in str(answer.rows()) for answer in answers.values()) > 4


@pytest.mark.parametrize("report", REPORTS)
def test_a_table_steers_no_terminal(answers, report):
    for width in (80, None):
        assert is_plain(as_text(answers[report], "table", width=width))
    assert is_plain(as_text(answers[report], "table", full_names=True))
    assert is_plain(COLOR.sub("", as_text(answers[report], "table", width=120, color=True)))


@pytest.mark.parametrize("report", REPORTS)
def test_markdown_is_a_table_of_as_many_rows(answers, report):
    text = as_text(answers[report], "markdown")
    assert is_plain(text)
    assert not markup(text)
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    rows = answers[report].row_count
    assert [token.type for token in tokens].count("tr_open") == (rows + 1 if rows else 0)
    assert [token.type for token in tokens].count("heading_open") == 1


@pytest.mark.parametrize("report", REPORTS)
def test_machines_read_the_very_names(answers, report, tmp_path):
    answer = answers[report]
    rows = [list(map(plain, row)) for row in answer.rows()]
    names = [column.name for column in answer.columns]
    told = json.loads(as_text(answer, "json"))
    assert [[row[name] for name in names] for row in told["rows"]] == rows
    lines = as_text(answer, "jsonl").removesuffix("\n")
    assert [[json.loads(line)[name] for name in names] for line in lines.split("\n") if line] == rows
    texts = [place for place, column in enumerate(answer.columns) if column.type == "VARCHAR"]
    header, *read = csv.reader(io.StringIO(as_text(answer, "csv"), newline=""))
    assert header == names
    assert [[row[at] for at in texts] for row in read] == [[row[at] or "" for at in texts] for row in rows]
    write(answer, tmp_path / "answer.parquet", "parquet")
    frame = pl.read_parquet(tmp_path / "answer.parquet")
    for at in texts:
        assert frame[names[at]].to_list() == [row[at] for row in rows]


@pytest.mark.parametrize("report", REPORTS)
def test_a_spreadsheet_computes_nothing(answers, report):
    cells = [cell for row in csv.reader(io.StringIO(as_text(answers[report], "csv", csv_safe=True))) for cell in row]
    assert not [cell for cell in cells if FORMULA.match(cell.lstrip(" ")) and not NUMBER.fullmatch(cell)]


def test_a_text_that_is_safe_stays_and_numbers_stay_numbers():
    columns = (Column("=name", "VARCHAR"), Column("n", "BIGINT"), Column("x", "DOUBLE"))
    rows = [["a=b", -5, -0.5], ["=1", 1, 1.0], ["-", 1, 1.0], [" =1", 1, None], [None, None, None]]
    made = as_text(of_rows(columns, rows, report="r", title=""), "csv", csv_safe=True)
    assert made == "'=name,n,x\na=b,-5,-0.5\n'=1,1,1.0\n'-,1,1.0\n' =1,1,\n,,\n"
    assert "'" not in as_text(of_rows(columns, rows, report="r", title=""), "csv")


@pytest.mark.slow
@pytest.mark.parametrize("write", [markdown.text, markdown.agent_text], ids=["markdown", "agent"])
def test_the_report_in_markdown_has_no_markup_of_a_stranger(gathered, write):
    text = write(gathered)
    assert is_plain(text)
    tags = {tag for token in markup(text) for tag in re.findall(r"</?\w+", token.content)}
    assert tags <= {"<details", "</details", "<summary", "</summary"}
    assert not [token for token in markup(text) if token.type != "html_block"]
    assert "IGNORE PREVIOUS" in text


def test_an_agent_is_told_what_is_data_and_finds_names_in_code_alone(gathered):
    text = markdown.agent_text(gathered)
    assert text.index(DATA) < text.index("IGNORE PREVIOUS")
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    inline = [child for token in tokens for child in token.children or ()]
    quoted = [child.content for child in inline if child.type == "code_inline"]
    others = [child.content for child in inline if child.type == "text"]
    for mark in ("IGNORE PREVIOUS", "onmouseover", "alert(1)", "HYPERLINK", "DROP TABLE"):
        assert not [one for one in others if mark in one], mark
        assert mark != "IGNORE PREVIOUS" or [one for one in quoted if mark in one]
    assert not [token for token in tokens if token.type == "fence"]


class Page(HTMLParser):
    """The elements of a page, their attributes, and what is in them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts, self.scripts, self.data = set(), [], [], [], []
        self._in = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs
        self._in = "data" if ("type", "application/json") in attrs else tag

    def handle_data(self, data):
        {"script": self.scripts, "style": self.scripts, "data": self.data}.get(self._in, self.texts).append(data)

    def handle_endtag(self, _):
        self._in = ""


@pytest.mark.slow
def test_a_page_has_the_elements_of_any_other_page(trace, gathered, sample):
    page = Page(html_page(trace, gathered))
    with nsys_insight.open(sample("decode_graph_node"), use_cache=False) as other:
        usual = Page(html_page(other, content.gather(other, AUTO)))
    assert page.scripts == usual.scripts
    assert page.tags <= usual.tags | {"h4", "ul", "li", "details", "summary", "g", "polyline", "circle", "title"}
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    links = {value for name, value in page.attributes if name in ("href", "src")}
    assert not [link for link in links if not link.startswith(("#", "data:,"))]
    assert [text for text in page.texts if "<script>alert(1)</script>" in text]
    assert all(is_plain(text) for text in page.texts)
    assert all(is_plain(value or "") for _, value in page.attributes)
    (data,) = page.data
    assert not set("<>&'\u2028") & set(data)
    assert is_plain(data)
    assert "<script>alert(1)</script>" in str(json.loads(data))


def test_the_diagnosis_is_text(gathered):
    found = gathered.diagnosis
    assert is_plain(diagnosis_text.text(found, 100))
    assert is_plain(diagnosis_text.markdown(found))
    assert not markup(diagnosis_text.markdown(found))
    assert json.loads(as_text(diagnosis_text.answer(found), "json"))["summary"]["verdict"] == found.verdict


def test_a_timeline_has_the_very_names(trace, tmp_path):
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as Timeline

    convert(trace, tmp_path / "hostile.pftrace", "perfetto")
    timeline = Timeline.FromString((tmp_path / "hostile.pftrace").read_bytes())
    names = {name.name for packet in timeline.packet for name in packet.interned_data.event_names}
    assert {name for name in NAMES.values() if isinstance(name, str)} <= names


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_is_one_command_of_the_shell(trace, name):
    """Each name is an argument of the recorded program, and of the filter where it is a kernel's."""
    if isinstance(NAMES[name], bytes) or not NAMES[name].strip():
        pytest.skip("no kernel can be asked for by that")
    made = plan.make(trace, kernels=(NAMES[name][:200],))
    command = made.command("ncu", ())
    printed = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {plan.shell(command)}"],
        capture_output=True, check=True, env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert printed.stdout.decode().split("\0")[:-1] == [word.replace("\0", "") for word in command]
    assert is_plain(plan.shell(command))
    assert is_plain(as_text(made.answer, "table"))


@pytest.mark.parametrize(
    "command", [["info"], ["top"], ["nvtx"], ["ncu", "plan"], ["diagnose"], ["sql", "FROM kernels"]]
)
def test_what_is_printed_is_text(path, command):
    words = [*command[:2], str(path)] if command[0] == "ncu" else [command[0], str(path), *command[1:]]
    done = run(*words)
    assert done.returncode == 0, done.stderr
    assert is_plain(done.stdout)
    assert is_plain(done.stderr)


def test_csv_safe_is_about_csv(path):
    assert run("top", path, "--csv-safe").returncode == 2
    safe = run("top", path, "--csv-safe", "--format", "csv").stdout
    assert "'=HYPERLINK" in safe
    assert INJECTION in safe
