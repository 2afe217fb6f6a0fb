"""What notebooks and editors see: self-contained HTML, pictures, and reports as documented methods."""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from opening import only_rules, open_trace
from synthetic import Trace as Synthetic

import nsys_insight
from nsys_insight.errors import UsageError
from nsys_insight.notebook import html as page_html
from nsys_insight.notebook import methods
from nsys_insight.packs.library import built_in_packs
from nsys_insight.session.session import Session
from nsys_insight.trace import Trace

REPOSITORY = Path(__file__).parents[1]
SVG = "{http://www.w3.org/2000/svg}"
STUB = REPOSITORY / "nsys_insight" / "reports.pyi"


@pytest.fixture(scope="module")
def eager():
    with open_trace(REPOSITORY / "sample_traces" / "decode_eager.sqlite") as trace:
        yield trace


@pytest.fixture
def evil(tmp_path):
    """Open a trace with names that are HTML."""
    trace = Synthetic()
    trace.thread().kernel("<script>alert(1)</script>", start=1_000, runs=500).kernel("]]>&\"'", start=9_000, runs=700)
    with nsys_insight.open(trace.write(tmp_path / "<b>evil.sqlite"), use_cache=False) as session:
        yield session


def render_html(trace):
    return [trace._repr_html_(), trace.answer("top")._repr_html_(), trace.diagnose()._repr_html_()]


@pytest.fixture(scope="module")
def html_outputs(eager):
    with only_rules("launch-bound", "graph-candidate"):
        return render_html(eager)


def parse_svg(picture):
    return ET.fromstring(picture._repr_svg_())  # noqa: S314 - our own


def labelled_bars(picture):
    """Return the rectangles that have a title: the title, the position and the width."""
    return [
        (rect.find(f"{SVG}title").text, float(rect.get("x")), float(rect.get("width")))
        for rect in parse_svg(picture).iter(f"{SVG}rect")
        if rect.find(f"{SVG}title") is not None
    ]


class TestHtml:
    @pytest.mark.slow
    def test_html_is_self_contained_and_styles_only_itself(self, html_outputs):
        for html in html_outputs:
            assert not re.search(r"<script|<link|<iframe|@import|url\(|https?:|\bon\w+=|<button", html)
            for css in re.findall(r"<style>(.*?)</style>", html, re.DOTALL):
                outer = re.sub(r"@media[^{]+\{(.*?\})\s*\}", r"\1", css)
                while (shorter := re.sub(r"\{[^{}]*\}", ";", outer)) != outer:
                    outer = shorter
                selectors = [selector for selector in outer.split(";") if selector.strip()]
                selector_pattern = re.compile(rf' ?(\[data-jp-theme-light="(true|false)"\] )?\.{page_html.ROOT_CLASS} ')
                assert len(selectors) == 5
                assert all(map(selector_pattern.fullmatch, selectors)), selectors
            assert len(html) < 40_000

    def test_css_braces_match_and_every_class_is_styled_as_on_the_page(self, html_outputs):
        page_css = page_html._read_css()
        for html in html_outputs:
            (css,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
            assert css.count("{") == css.count("}") > 3
            classes = {name for names in re.findall(r'class="([^"]*)"', html) for name in names.split()} - {
                page_html.ROOT_CLASS
            }
            # Classes that the page styles only on hover, or inside elements that are missing here, need no rule.
            missing = {name for name in classes if re.search(rf"(?m)^\.{name} \{{", page_css) and f".{name}" not in css}
            assert missing == set()

    @pytest.mark.slow
    def test_html_shows_what_the_answers_contain(self, eager, html_outputs):
        trace, top, diagnosis = html_outputs
        assert "6,469" in trace
        assert "NVIDIA H200" in trace
        assert "nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN" in top
        assert "20 of 30 rows" in top
        assert "launch-bound" in diagnosis
        assert "Kernel launch overhead" in diagnosis
        assert "--nvtx prefill" in eager.scope(nvtx="prefill")._repr_html_()
        assert "No calls that allocate" in eager.answer("mallocs")._repr_html_()
        assert "<td" in eager.query("SELECT 1 AS one")._repr_html_()

    @pytest.mark.slow
    def test_names_of_the_trace_are_text(self, evil):
        outputs = [*render_html(evil), evil.timeline()._repr_svg_(), evil.query("FROM kernels")._repr_html_()]
        for html in outputs:
            assert "<script>alert" not in html
            assert "<b>evil" not in html
        assert any("&lt;script&gt;" in html for html in outputs)
        assert parse_svg(evil.timeline()) is not None

    @pytest.mark.slow
    def test_several_traces_are_named(self, eager):
        with nsys_insight.open([eager.path, eager.path.with_name("churn.sqlite")], use_cache=False) as traces:
            assert "churn.sqlite" in traces._repr_html_()
            assert "trace" in traces.answer("top")._repr_html_()
            with pytest.raises(UsageError, match="one trace"):
                traces.timeline()

    def test_a_cell_shows_the_main_columns_and_says_what_is_left_out(self, eager):
        answer = eager.answer("top")
        html = answer._repr_html_()
        main = sorted((column for column in answer.columns if column.position is not None), key=lambda c: c.position)
        assert 3 < len(main) < len(answer.columns)
        assert html.count("<th ") == len(main)
        assert f"20 of 30 rows, {len(main)} of {len(answer.columns)} columns; .frame() has all" in html
        assert eager.query("SELECT 1 AS a, 2 AS b")._repr_html_().count("<th ") == 2

    def test_answers_and_diagnoses_are_the_json_of_the_command_line(self, eager):
        with only_rules("launch-bound"):
            answer, diagnosis = (json.loads(result.to_json()) for result in (eager.answer("top"), eager.diagnose()))
        assert (answer["report"], answer["row_count"], len(answer["rows"])) == ("top", 30, 30)
        assert diagnosis["summary"]["verdict"] == "launch-bound"
        assert diagnosis["rows"][0]["code"].startswith("NSI")


class TestFunctions:
    @pytest.mark.slow
    def test_a_report_is_written(self, eager, tmp_path):
        assert nsys_insight.report(eager, tmp_path / "page.md") == tmp_path / "page.md"
        assert "launch-bound" in (tmp_path / "page.md").read_text(encoding="utf-8")
        (tmp_path / "mine.md").write_text("mine")
        with pytest.raises(UsageError, match="mine"):
            nsys_insight.report(eager, tmp_path / "mine.md")

    def test_limits_are_checked_as_by_the_command(self, eager, tmp_path):
        met = nsys_insight.check(eager, max={"launches_per_token": 200}, min={"gpu_busy_pct": 10})
        assert (met.title, [row["verdict"] for row in met.dicts()]) == ("All 2 limits met", ["ok", "ok"])
        (tmp_path / "budget.toml").write_text('[max]\nwall = "1ms"\n')
        broken = nsys_insight.check(eager, budget=tmp_path / "budget.toml", baseline=eager, fail_on=["NSI1"]).dicts()
        verdicts = {row["metric"]: row["verdict"] for row in broken if row["bound"] != "baseline"}
        assert verdicts["wall_ns"] == "broken"
        assert [verdict for name, verdict in verdicts.items() if name.startswith("NSI101")] == ["broken"]
        assert {row["verdict"] for row in broken if row["bound"] == "baseline"} == {"ok"}
        assert len(nsys_insight.check(eager, fail_on="NSI101, NSI102").dicts()) == 2
        for options in ({}, {"fail_on": ["none"]}, {"max": {"wal": "1ms"}}):
            with pytest.raises(UsageError):
                nsys_insight.check(eager, **options)

    @pytest.mark.parametrize(
        ("options", "message", "hint"),
        [
            ({"max": {"wall": 3}}, "max wall is 3 without a unit", "write the unit: wall=3ms"),
            ({"max": {"launches": "3ms"}}, "max launches takes a number, not '3ms'", "such as launches=15"),
            ({"max": {"wall": "3ms"}, "tokens": 0}, "tokens cannot be 0", "it is 1 or more"),
            (
                {"max": {"wall": "3ms"}, "step_rnge": "x"},
                "there is no option 'step_rnge' about steps",
                "did you mean step_range?",
            ),
            (
                {"max": {"wall": "3ms"}, "loop": "1", "step_range": "x"},
                "loop says what",
                "omit step_range and step_method",
            ),
        ],
    )
    def test_errors_name_parameters_instead_of_flags(self, eager, options, message, hint):
        with pytest.raises(UsageError, match=message) as caught:
            nsys_insight.check(eager, **options)
        assert caught.value.hint.startswith(hint)

    def test_a_command_in_an_error_keeps_its_flags(self, eager):
        with pytest.raises(UsageError, match="step_time_ns takes two times") as caught:
            nsys_insight.diff(eager, eager, step_time_ns=("3ms",))
        assert caught.value.hint == "nsys-insight diff BEFORE AFTER --step-time 610us,515us"


class TestPictures:
    def test_a_timeline_shows_the_requested_step(self, eager):
        picture = eager.timeline(step=5)
        row = eager.steps().filter(step=5).to_dicts()[0]
        texts = [text.text for text in parse_svg(picture).iter(f"{SVG}text")]
        assert texts[0] == "decode_eager.sqlite: step 5"
        assert {"stream 7", "GPU idle", "calls"} <= set(texts)
        inner = 1000 - 120 - 12
        by_kind = {"idle": 0.0, "decode_step": 0.0}
        for label, x, width in labelled_bars(picture):
            assert 120 <= x <= x + width <= 120 + inner + 0.5
            name = label.splitlines()[0]
            if name in by_kind:
                by_kind[name] += width / inner
        assert by_kind["decode_step"] == pytest.approx(1, abs=0.005)  # a step lasts to the next range
        assert by_kind["idle"] == pytest.approx(row["gpu_idle_ns"] / row["duration_ns"], abs=0.01)

    @pytest.mark.slow
    def test_a_typical_step_is_drawn_by_default_and_an_unknown_step_is_an_error(self, eager, evil):
        assert re.search(r"decode_eager.sqlite: step \d+<", eager.timeline().svg)
        assert "step" not in evil.timeline().svg.split("</text>")[0]
        with pytest.raises(UsageError, match="no step 500") as error:
            eager.timeline(step=500)
        assert error.value.__notes__ == ["hint: nsys-insight steps lists them"]

    def test_the_parts_of_the_idle_plot_add_up_to_its_width(self, eager):
        bars = labelled_bars(eager.idle_plot())
        assert sum(width for _, _, width in bars) == pytest.approx(1000 - 24, rel=0.01)
        assert {label.split(":")[0] for label, *_ in bars} == set(eager.idle()["cause"])

    def test_a_roofline_is_drawn_if_the_work_is_known(self, eager):
        circles = list(parse_svg(eager.roofline_plot(gemm="1,512,512", limit=3)).iter(f"{SVG}circle"))
        assert sum(circle.find(f"{SVG}title") is not None for circle in circles) == 3
        with pytest.raises(UsageError, match="nothing to draw") as caught:
            eager.roofline_plot()
        assert caught.value.hint.startswith("give a size: gemm M,N,K")

    @pytest.mark.slow
    def test_an_empty_trace_has_nothing_to_draw(self, tmp_path):
        with nsys_insight.open(Synthetic().write(tmp_path / "nothing.sqlite"), use_cache=False) as trace:
            for draw in (trace.timeline, trace.idle_plot):
                with pytest.raises(UsageError, match="nothing to draw"):
                    draw()
            assert "nothing.sqlite" in trace._repr_html_()

    def test_a_picture_is_saved(self, eager, tmp_path):
        picture = eager.idle_plot()
        assert picture.save(tmp_path / "idle.svg").read_text(encoding="utf-8") == picture.svg
        with pytest.raises(UsageError, match=r"\.svg or \.png|cannot be written"):
            picture.save(tmp_path / "idle.gif")


class TestMethods:
    def test_the_stub_matches_the_headers(self):
        assert STUB.read_text(encoding="utf-8") == methods.write_stub()

    def test_a_report_is_the_same_method_to_an_editor_and_to_python(self, eager):
        (reports,) = (node for node in ast.parse(methods.write_stub()).body if isinstance(node, ast.ClassDef))
        stub_methods = {node.name: node for node in reports.body if isinstance(node, ast.FunctionDef)}
        assert stub_methods.keys() == {name.replace("-", "_") for name in built_in_packs()}
        for name, node in stub_methods.items():
            method = getattr(eager, name)
            parameters = inspect.signature(method).parameters
            assert [argument.arg for argument in node.args.kwonlyargs] == list(parameters)
            defaults = [ast.literal_eval(default) for default in node.args.kw_defaults]
            assert defaults == [parameter.default for parameter in parameters.values()]
            assert ast.get_docstring(node) == inspect.getdoc(method).rstrip()
            assert "Columns:" in method.__doc__

    def test_a_method_passes_its_arguments(self, eager):
        assert eager.top(group_by="family").equals(eager.run("top", group_by="family"))
        assert eager.per_token().height > 0
        with pytest.raises(UsageError, match="group_by"):
            eager.top(group_by="color")

    def test_no_report_hides_a_method(self):
        own_names = {name for owner in (Trace, Session) for name in vars(owner)}
        assert own_names & {name.replace("-", "_") for name in built_in_packs()} == set()

    @pytest.mark.parametrize(
        ("misspelled_name", "suggested_name"), [("tpo", "top"), ("per_tokens", "per_token"), ("diagnos", "diagnose")]
    )
    def test_an_unknown_report_has_a_suggestion(self, eager, misspelled_name, suggested_name):
        with pytest.raises(AttributeError, match=f"did you mean {suggested_name}\\?") as error:
            getattr(eager, misspelled_name)
        assert error.value.obj is None  # else Python adds its own suggestion
        with pytest.raises(UsageError) as refused:
            eager.run(misspelled_name if suggested_name != "diagnose" else "tpo")
        assert refused.value.__notes__[0].startswith("hint: did you mean")

    def test_attributes_of_python_protocols_are_missing_without_a_suggestion(self, eager):
        assert not hasattr(eager, "_repr_png_")
        assert not hasattr(eager, "__array__")
        assert {"top", "timeline", "per_token", "scope", "sql"} <= set(dir(eager))

    def test_completion_lists_the_api_alone(self, eager):
        assert {"drop_invalid_rows", "refuse_several", "select_trace", "prefetch"}.isdisjoint(dir(eager))
        assert all(
            callable(getattr(eager, name)) or name in ("labels", "path", "paths")
            for name in dir(eager)
            if name[0] != "_"
        )
        with pytest.raises(AttributeError) as error:
            eager.report  # noqa: B018 - the attribute is looked up
        assert "_reports" not in str(error.value)

    def test_the_class_is_exported(self):
        assert nsys_insight.Trace is Trace
        with pytest.raises(AttributeError, match="no attribute 'Tracer'"):
            nsys_insight.Tracer  # noqa: B018

    @pytest.mark.slow
    def test_type_checkers_refuse_names_that_do_not_exist(self, tmp_path):
        from mypy import api

        code = (
            "import nsys_insight\nt = nsys_insight.open('x')\nt.top()\nt.diagnose().to_json()\nnsys_insight.check(t)\n"
        )
        (tmp_path / "used.py").write_text(code)
        (tmp_path / "misspelled.py").write_text(f"{code}t.tpo()\nnsys_insight.dif(t, t)\n")
        refused, *_ = api.run(["--strict", str(tmp_path / "used.py"), str(tmp_path / "misspelled.py")])
        assert "used.py" not in refused
        assert '"Trace" has no attribute "tpo"' in refused
        assert 'Module has no attribute "dif"' in refused

    def test_after_closing_an_error_says_so(self, sample):
        trace = nsys_insight.open(sample("churn"), use_cache=False)
        answer = trace.answer("top")
        trace.close()
        for use in (trace.top, trace.diagnose, lambda: trace.sql("SELECT 1"), lambda: trace.rows("SELECT 1")):
            with pytest.raises(UsageError, match="the trace is closed"):
                use()
        for read in (answer.rows, answer.frame, lambda: list(answer.batches())):
            with pytest.raises(UsageError, match="the trace of this answer is closed"):
                read()


@pytest.mark.slow
def test_the_example_runs(monkeypatch):
    monkeypatch.chdir(REPOSITORY / "docs")
    notebook = json.loads(Path("notebook.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names: dict[str, object] = {}
    used_methods = []
    for cell in cells:
        *before, last = ast.parse(cell).body
        assert isinstance(last, ast.Expr), cell
        exec(compile(ast.Module(before, []), "cell", "exec"), names)  # noqa: S102 - our own document
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307
        used_methods.append(
            next(
                method
                for method in ("_repr_svg_", "_repr_html_")
                if hasattr(value, method) and getattr(value, method)()
            )
        )
    assert used_methods.count("_repr_svg_") == 3
    assert len(used_methods) == len(cells) > 8
    names["trace"].close()


@pytest.mark.slow
def test_a_notebook_needs_no_widgets():
    """DuckDB imports ipywidgets in a Jupyter kernel. It detects the kernel by the objects that are faked here."""
    code = f"""
import sys
from types import ModuleType, SimpleNamespace
sys.modules["IPython"] = module = ModuleType("IPython")
module.get_ipython = lambda: SimpleNamespace(config={{"IPKernelApp": {{}}}})
sys.modules["ipywidgets"] = None
import nsys_insight
print(nsys_insight.open({str(REPOSITORY / "sample_traces" / "churn.sqlite")!r}).top().height)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (result.stderr, int(result.stdout) > 0) == ("", True)


def test_plain_python_shows_what_the_terminal_shows(sample):
    with open_trace(sample("decode_eager")) as trace, only_rules("launch-bound"):
        table, diagnosis = repr(trace.answer("top")), repr(trace.diagnose())
    assert table.startswith("Kernels by GPU time\n")
    assert max(map(len, table.splitlines())) <= 100
    assert diagnosis.splitlines()[0].startswith("decode_eager.sqlite: launch-bound")


def test_the_example_is_stored_with_outputs():
    notebook = json.loads((REPOSITORY / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] for cell in cells)
    assert not any("svg xmlns" in text for cell in cells for text in cell["outputs"][0]["data"]["text/plain"])
