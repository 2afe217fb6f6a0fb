"""Names are data in every output: each format prints exactly the name of a kernel, range, thread or GPU."""

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
from hostile_names import INJECTION, NAMES, write_hostile_trace
from markdown_it import MarkdownIt
from opening import open_trace

import nsys_insight
from nsys_insight.convert.convert import convert
from nsys_insight.diagnose import text as diagnosis_text
from nsys_insight.ncu import plan
from nsys_insight.packs.library import built_in_packs
from nsys_insight.packs.step_options import AUTO
from nsys_insight.page import content, html, markdown
from nsys_insight.render import write
from nsys_insight.render.json_ import make_plain
from nsys_insight.session.answer import Column, build_answer

REPOSITORY = Path(__file__).parents[1]
REPORTS = [name for name in built_in_packs() if name != "fusion-candidate"]
COLOR = re.compile(r"\x1b\[[\d;]*m")
# Cells that a spreadsheet evaluates as a formula.
FORMULA = re.compile(r"[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]")
NUMBER = re.compile(r"-?[\d.]+(e[+-]?\d+)?")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_hostile_trace(tmp_path_factory.mktemp("hostile") / "hostile.sqlite")


@pytest.fixture(scope="module")
def trace(path):
    with open_trace(path, is_final=True) as open_file:
        yield open_file


@pytest.fixture(scope="module")
def answers(trace):
    return {name: trace.answer(name) for name in REPORTS}


@pytest.fixture(scope="module")
def page_content(trace):
    """Gather the content of a page."""
    return content.gather(trace, AUTO)


def render_html(trace, page_content):
    return html.render_page(page_content, html.draw(trace, AUTO, page_content))


def write_text(answer, fmt, **options):
    stream = io.StringIO()
    write(answer, stream, fmt, **options)
    return stream.getvalue()


def is_printable(text):
    return all(line.isprintable() for line in text.split("\n"))


def list_markup(text):
    """Return the HTML, images and links that a Markdown reader finds."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    inline = [child for token in tokens for child in token.children or ()]
    return [token for token in (*tokens, *inline) if token.type in ("html_block", "html_inline", "image", "link_open")]


@pytest.mark.slow
def test_the_reports_contain_the_names(answers):
    """The other tests need these names in the reports."""
    names = {row["name"] for row in answers["top"].dicts()}
    text_names = [name for name in NAMES.values() if isinstance(name, str)]
    assert len(names & set(text_names)) > len(text_names) - 5
    assert sum("IGNORE PREVIOUS" in str(answer.rows()) for answer in answers.values()) > 4


def test_a_table_has_no_control_characters_of_names(answers):
    for answer in answers.values():
        for width in (80, None):
            assert is_printable(write_text(answer, "table", width=width))
        assert is_printable(write_text(answer, "table", full_names=True))
        assert is_printable(COLOR.sub("", write_text(answer, "table", width=120, color=True)))


def test_markdown_is_one_table_with_all_rows(answers):
    for answer in answers.values():
        text = write_text(answer, "markdown")
        assert is_printable(text)
        assert not list_markup(text)
        tokens = MarkdownIt("commonmark").enable("table").parse(text)
        rows = answer.row_count
        assert [token.type for token in tokens].count("tr_open") == (rows + 1 if rows else 0)
        assert [token.type for token in tokens].count("heading_open") == 1


def test_machine_formats_have_the_exact_names(answers, tmp_path):
    for answer in answers.values():
        rows = [list(map(make_plain, row)) for row in answer.rows()]
        names = [column.name for column in answer.columns]
        parsed = json.loads(write_text(answer, "json"))
        assert [[row[name] for name in names] for row in parsed["rows"]] == rows
        lines = write_text(answer, "jsonl").removesuffix("\n")
        assert [[json.loads(line)[name] for name in names] for line in lines.split("\n") if line] == rows
        text_columns = [index for index, column in enumerate(answer.columns) if column.type == "VARCHAR"]
        header, *csv_rows = csv.reader(io.StringIO(write_text(answer, "csv"), newline=""))
        assert header == names
        assert [[row[index] for index in text_columns] for row in csv_rows] == [
            [row[index] or "" for index in text_columns] for row in rows
        ]
        write(answer, tmp_path / "answer.parquet", "parquet")
        frame = pl.read_parquet(tmp_path / "answer.parquet")
        for index in text_columns:
            assert frame[names[index]].to_list() == [row[index] for row in rows]


@pytest.mark.parametrize("report", REPORTS)
def test_a_spreadsheet_finds_no_formula(answers, report):
    cells = [cell for row in csv.reader(io.StringIO(write_text(answers[report], "csv", csv_safe=True))) for cell in row]
    assert not [cell for cell in cells if FORMULA.match(cell.lstrip(" ")) and not NUMBER.fullmatch(cell)]


def test_csv_safe_changes_only_formulas():
    columns = (Column("=name", "VARCHAR"), Column("n", "BIGINT"), Column("x", "DOUBLE"))
    rows = [["a=b", -5, -0.5], ["=1", 1, 1.0], ["-", 1, 1.0], [" =1", 1, None], [None, None, None]]
    text = write_text(build_answer(columns, rows, report="r", title=""), "csv", csv_safe=True)
    assert text == "'=name,n,x\na=b,-5,-0.5\n'=1,1,1.0\n'-,1,1.0\n' =1,1,\n,,\n"
    assert "'" not in write_text(build_answer(columns, rows, report="r", title=""), "csv")


@pytest.mark.slow
def test_the_markdown_report_has_no_markup_from_names(page_content):
    text = markdown.write_report(page_content)
    assert is_printable(text)
    tags = {tag for token in list_markup(text) for tag in re.findall(r"</?\w+", token.content)}
    assert tags <= {"<details", "</details", "<summary", "</summary"}
    assert not [token for token in list_markup(text) if token.type != "html_block"]
    assert "IGNORE PREVIOUS" in text


class Page(HTMLParser):
    """The elements of a page, their attributes and their content."""

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
def test_a_page_has_the_same_elements_as_any_other_page(trace, page_content, sample):
    page = Page(render_html(trace, page_content))
    with nsys_insight.open(sample("decode_graph_node"), use_cache=False) as sample_trace:
        sample_page = Page(render_html(sample_trace, content.gather(sample_trace, AUTO)))
    assert page.scripts == sample_page.scripts
    assert page.tags <= sample_page.tags | {"h4", "ul", "li", "details", "summary", "g", "polyline", "circle", "title"}
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    links = {value for name, value in page.attributes if name in ("href", "src")}
    assert not [link for link in links if not link.startswith(("#", "data:,"))]
    assert [text for text in page.texts if "<script>alert(1)</script>" in text]
    assert all(is_printable(text) for text in page.texts)
    assert all(is_printable(value or "") for _, value in page.attributes)
    (data,) = page.data
    assert not set("<>&'\u2028") & set(data)
    assert is_printable(data)
    assert "<script>alert(1)</script>" in str(json.loads(data))


def test_the_diagnosis_is_printable(page_content):
    diagnosis = page_content.diagnosis
    assert is_printable(diagnosis_text.write_text(diagnosis, 100))
    assert is_printable(diagnosis_text.write_markdown(diagnosis))
    assert not list_markup(diagnosis_text.write_markdown(diagnosis))
    assert (
        json.loads(write_text(diagnosis_text.make_answer(diagnosis), "json"))["summary"]["verdict"] == diagnosis.verdict
    )


def test_a_timeline_has_the_exact_names(trace, tmp_path):
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as Timeline

    convert(trace, tmp_path / "hostile.pftrace", "perfetto")
    timeline = Timeline.FromString((tmp_path / "hostile.pftrace").read_bytes())
    names = {name.name for packet in timeline.packet for name in packet.interned_data.event_names}
    assert {name for name in NAMES.values() if isinstance(name, str)} <= names


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_is_one_shell_command(trace, name):
    """Each name is an argument of the recorded program, and kernel names are in the filter too."""
    if isinstance(NAMES[name], bytes) or not NAMES[name].strip():
        pytest.skip("no kernel can be selected by this name")
    ncu_plan = plan.make(trace, kernels=(NAMES[name][:200],))
    command = ncu_plan.build_command("ncu", ())
    process = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {plan.quote_command(command)}"],
        capture_output=True, check=True, env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert process.stdout.decode().split("\0")[:-1] == [word.replace("\0", "") for word in command]
    assert is_printable(plan.quote_command(command))
    assert is_printable(write_text(ncu_plan.answer, "table"))


@pytest.mark.parametrize(
    "command", [["info"], ["top"], ["nvtx"], ["ncu", "plan"], ["diagnose"], ["sql", "FROM kernels"]]
)
def test_command_output_is_printable(path, command):
    words = [*command[:2], str(path)] if command[0] == "ncu" else [command[0], str(path), *command[1:]]
    process = run(*words)
    assert process.returncode == 0, process.stderr
    assert is_printable(process.stdout)
    assert is_printable(process.stderr)


def test_csv_safe_needs_csv(path):
    assert run("top", path, "--csv-safe").returncode == 2
    output = run("top", path, "--csv-safe", "--format", "csv").stdout
    assert "'=HYPERLINK" in output
    assert INJECTION in output
