"""What notebooks and editors see: HTML that stands alone, pictures, and reports as methods that explain themselves."""

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
from synthetic import Trace as Synthetic

import nsys_insight
from nsys_insight.errors import UsageError
from nsys_insight.notebook import html as page_html
from nsys_insight.notebook import methods
from nsys_insight.packs.library import built_in
from nsys_insight.session.session import Session
from nsys_insight.trace import Trace

REPOSITORY = Path(__file__).parents[1]
SVG = "{http://www.w3.org/2000/svg}"
STUB = REPOSITORY / "nsys_insight" / "reports.pyi"


@pytest.fixture(scope="module")
def eager():
    with nsys_insight.open(REPOSITORY / "sample_traces" / "decode_eager.sqlite", use_cache=False) as trace:
        yield trace


@pytest.fixture
def evil(tmp_path):
    """A trace whose names are HTML."""
    trace = Synthetic()
    trace.thread().kernel("<script>alert(1)</script>", at=1_000, runs=500).kernel("]]>&\"'", at=9_000, runs=700)
    with nsys_insight.open(trace.write(tmp_path / "<b>evil.sqlite"), use_cache=False) as opened:
        yield opened


def html_of(trace):
    return [trace._repr_html_(), trace.answer("top")._repr_html_(), trace.diagnose()._repr_html_()]


@pytest.fixture(scope="module")
def shown(eager):
    return html_of(eager)


def drawn(picture):
    return ET.fromstring(picture._repr_svg_())  # noqa: S314 - our own


def bars(picture):
    """The rectangles that say what they are, by the first line of that."""
    return [
        (rect.find(f"{SVG}title").text, float(rect.get("x")), float(rect.get("width")))
        for rect in drawn(picture).iter(f"{SVG}rect")
        if rect.find(f"{SVG}title") is not None
    ]


class TestHtml:
    @pytest.mark.slow
    def test_it_needs_nothing_else_and_styles_nothing_else(self, shown):
        for html in shown:
            assert not re.search(r"<script|<link|<iframe|@import|url\(|https?:|\bon\w+=|<button", html)
            for css in re.findall(r"<style>(.*?)</style>", html, re.DOTALL):
                flat = re.sub(r"@media[^{]+\{|\}\s*\}", "}", css)
                selectors = [each for rule in re.findall(r"([^{}]+)\{", flat) for each in rule.split(",")]
                assert selectors
                assert all(each.strip().startswith(f".{page_html.ROOT}") for each in selectors), selectors
            assert len(html) < 40_000

    def test_its_braces_match_and_every_class_that_it_uses_is_styled_as_on_the_page(self, shown):
        whole = page_html._css()
        for html in shown:
            (css,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
            assert css.count("{") == css.count("}") > 3
            used = {name for names in re.findall(r'class="([^"]*)"', html) for name in names.split()} - {page_html.ROOT}
            # Those that the page styles only under a pointer, or inside what is not here, need no rule.
            missing = {name for name in used if re.search(rf"(?m)^\.{name} \{{", whole) and f".{name}" not in css}
            assert missing == set()

    @pytest.mark.slow
    def test_it_says_what_the_answers_say(self, eager, shown):
        trace, top, diagnosis = shown
        assert "6,469" in trace
        assert "NVIDIA H200" in trace
        assert "nvjet_sm90_tst_8x64_64x16_4x1_v_bz_TNN" in top
        assert "20 of 30 rows" in top
        assert "launch-bound" in diagnosis
        assert "The GPU waits for launches" in diagnosis
        assert "--nvtx prefill" in eager.scope(nvtx="prefill")._repr_html_()
        assert "No calls that allocate" in eager.answer("mallocs")._repr_html_()
        assert "<td" in eager.query("SELECT 1 AS one")._repr_html_()

    @pytest.mark.slow
    def test_names_of_the_trace_are_text(self, evil):
        found = [*html_of(evil), evil.timeline()._repr_svg_(), evil.query("FROM kernels")._repr_html_()]
        for html in found:
            assert "<script>alert" not in html
            assert "<b>evil" not in html
        assert any("&lt;script&gt;" in html for html in found)
        assert drawn(evil.timeline()) is not None

    @pytest.mark.slow
    def test_several_traces_are_named(self, eager):
        with nsys_insight.open([eager.path, eager.path.with_name("churn.sqlite")], use_cache=False) as both:
            assert "churn.sqlite" in both._repr_html_()
            assert "trace" in both.answer("top")._repr_html_()
            with pytest.raises(UsageError, match="one trace"):
                both.timeline()


class TestPictures:
    def test_a_timeline_is_the_step_that_was_asked_for(self, eager):
        picture = eager.timeline(step=5)
        row = eager.steps().filter(step=5).to_dicts()[0]
        texts = [text.text for text in drawn(picture).iter(f"{SVG}text")]
        assert texts[0] == "decode_eager.sqlite: step 5"
        assert {"stream 7", "GPU idle", "calls"} <= set(texts)
        inner = 1000 - 120 - 12
        by_kind = {"idle": 0.0, "decode_step": 0.0}
        for what, x, width in bars(picture):
            assert 120 <= x <= x + width <= 120 + inner + 0.5
            name = what.splitlines()[0]
            if name in by_kind:
                by_kind[name] += width / inner
        assert by_kind["decode_step"] == pytest.approx(1, abs=0.001)
        assert by_kind["idle"] == pytest.approx(row["gpu_idle_ns"] / row["duration_ns"], abs=0.01)

    @pytest.mark.slow
    def test_a_typical_step_is_drawn_without_a_number_and_none_that_is_not_there(self, eager, evil):
        assert re.search(r"decode_eager.sqlite: step \d+<", eager.timeline().svg)
        assert "step" not in evil.timeline().svg.split("</text>")[0]
        with pytest.raises(UsageError, match="no step 500") as error:
            eager.timeline(step=500)
        assert error.value.__notes__ == ["hint: nsys-insight steps lists them"]

    def test_the_parts_of_the_idle_plot_add_up_to_its_width(self, eager):
        found = bars(eager.idle_plot())
        assert sum(width for _, _, width in found) == pytest.approx(1000 - 24, rel=0.01)
        assert {what.split(":")[0] for what, *_ in found} == set(eager.idle()["cause"])

    def test_a_roofline_is_drawn_where_the_work_is_known(self, eager):
        circles = list(drawn(eager.roofline_plot(gemm="1,512,512", limit=3)).iter(f"{SVG}circle"))
        assert sum(circle.find(f"{SVG}title") is not None for circle in circles) == 3
        with pytest.raises(UsageError, match="nothing to draw"):
            eager.roofline_plot()

    @pytest.mark.slow
    def test_nothing_is_drawn_where_nothing_ran(self, tmp_path):
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
    def test_the_stub_is_what_the_headers_say(self):
        assert STUB.read_text(encoding="utf-8") == methods.stub()

    def test_a_report_is_the_same_method_to_an_editor_and_to_python(self, eager):
        (reports,) = (node for node in ast.parse(methods.stub()).body if isinstance(node, ast.ClassDef))
        typed = {node.name: node for node in reports.body if isinstance(node, ast.FunctionDef)}
        assert typed.keys() == {name.replace("-", "_") for name in built_in()}
        for name, node in typed.items():
            method = getattr(eager, name)
            taken = inspect.signature(method).parameters
            assert [argument.arg for argument in node.args.kwonlyargs] == list(taken)
            defaults = [ast.literal_eval(default) for default in node.args.kw_defaults]
            assert defaults == [parameter.default for parameter in taken.values()]
            assert ast.get_docstring(node) == inspect.getdoc(method).rstrip()
            assert "Columns:" in method.__doc__

    def test_a_method_answers_with_what_it_takes(self, eager):
        assert eager.top(group_by="family").equals(eager.run("top", group_by="family"))
        assert eager.per_token().height > 0
        with pytest.raises(UsageError, match="group-by"):
            eager.top(group_by="color")

    def test_no_report_hides_a_method(self):
        own = {name for each in (Trace, Session) for name in vars(each)}
        assert own & {name.replace("-", "_") for name in built_in()} == set()

    @pytest.mark.parametrize(("typed", "meant"), [("tpo", "top"), ("per_tokens", "per_token"), ("diagnos", "diagnose")])
    def test_a_report_that_is_not_there_is_near_one_that_is(self, eager, typed, meant):
        with pytest.raises(AttributeError, match=f"did you mean {meant}\\?") as error:
            getattr(eager, typed)
        assert error.value.obj is None  # else Python adds its own suggestion
        with pytest.raises(UsageError) as refused:
            eager.run(typed if meant != "diagnose" else "tpo")
        assert refused.value.__notes__[0].startswith("hint: did you mean")

    def test_what_python_looks_for_by_itself_is_simply_not_there(self, eager):
        assert not hasattr(eager, "_repr_png_")
        assert not hasattr(eager, "__array__")
        assert {"top", "timeline", "per_token"} <= set(dir(eager))


@pytest.mark.slow
def test_the_example_runs(monkeypatch):
    monkeypatch.chdir(REPOSITORY / "docs")
    notebook = json.loads(Path("notebook.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names: dict[str, object] = {}
    shown = []
    for cell in cells:
        *before, last = ast.parse(cell).body
        assert isinstance(last, ast.Expr), cell
        exec(compile(ast.Module(before, []), "cell", "exec"), names)  # noqa: S102 - our own document
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307
        shown.append(
            next(way for way in ("_repr_svg_", "_repr_html_") if hasattr(value, way) and getattr(value, way)())
        )
    assert shown.count("_repr_svg_") == 3
    assert len(shown) == len(cells) > 8
    names["trace"].close()


@pytest.mark.slow
def test_a_notebook_needs_no_widgets():
    """DuckDB asks for ipywidgets where it runs in a kernel of Jupyter, which it tells as here."""
    code = f"""
import sys
from types import ModuleType, SimpleNamespace
sys.modules["IPython"] = module = ModuleType("IPython")
module.get_ipython = lambda: SimpleNamespace(config={{"IPKernelApp": {{}}}})
sys.modules["ipywidgets"] = None
import nsys_insight
print(nsys_insight.open({str(REPOSITORY / "sample_traces" / "churn.sqlite")!r}).top().height)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stderr, int(done.stdout) > 0) == ("", True)
