"""Drawings of the roofline: every kernel is at its coordinates and under the roofs."""

from __future__ import annotations

import math
import sys
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import command_line
import pytest
from synthetic import Trace

from nsys_insight.errors import UsageError
from nsys_insight.render import roofline
from nsys_insight.render.roofline import Point

H200 = {"bandwidth": 4.8e12}
POINTS = [
    Point("gemm<a & b>", "fp16", 1_000, 500, 1_000, **H200),
    Point("at the ridge", "fp16", 1_000 / 4.8, 1_000, 1_000, **H200),
    Point("add", "fp32", 0.1, 0.48, 67, **H200),
]


def run(*arguments):
    process = command_line.run("roofline", *arguments, env={"COLUMNS": "80"})
    return process.returncode, process.stdout, process.stderr


@pytest.fixture
def trace(tmp_path):
    synthetic_trace = Trace()
    synthetic_trace.thread().launch("hgemm_nn", runs=1_000_000)
    return synthetic_trace.write(tmp_path / "trace.sqlite")


def test_a_mark_stands_where_the_axes_say():
    lines = roofline.plot(POINTS, width=80, height=21).split("\n")
    rows = [line.partition("│")[2] for line in lines[1:22]]
    positions = {mark: (row.index(mark), number) for number, row in enumerate(rows) for mark in "012" if mark in row}
    labels = {float(line[:7]): number for number, line in enumerate(lines[1:22]) if line[:7].strip()}
    assert labels[1_000] == positions["1"][1]
    assert labels[1_000] < positions["0"][1] < labels[100]
    assert labels[1] < positions["2"][1] < labels[0.1]
    # Kernel 1 is at the ridge, on both roofs. Left of it is the roof of the memory, right of it the roof of the peak.
    assert set(rows[positions["1"][1]][positions["1"][0] + 1 :]) == {"─"}
    assert rows[positions["2"][1]][positions["2"][0] - 1 : positions["2"][0] + 2].strip("/ ") == "2"
    assert max(map(len, lines)) <= 80


def test_the_picture_is_xml_and_its_circles_stand_where_the_axes_say():
    root = ET.fromstring(roofline.draw_svg(POINTS))  # noqa: S314 - our own
    name = "{http://www.w3.org/2000/svg}"
    circles = [circle for circle in root.iter(f"{name}circle") if circle.find(f"{name}title") is not None]
    (x0, y0), (x1, y1), (x2, y2) = ((float(c.attrib["cx"]), float(c.attrib["cy"])) for c in circles)
    decade = (x0 - x1) / math.log10(4.8)
    assert x1 - x2 == pytest.approx(decade * math.log10(1_000 / 4.8 / 0.1), abs=0.5)
    assert (y2 - y1) / (y0 - y1) == pytest.approx(math.log10(1_000 / 0.48) / math.log10(2), rel=0.01)
    corners = {corner for line in root.iter(f"{name}polyline") for corner in line.attrib["points"].split()}
    assert f"{x1:.1f},{y1:.1f}" in corners
    assert circles[0].find(f"{name}title").text.startswith("gemm<a & b>: fp16")


def test_it_is_drawn_as_characters_and_as_a_file(trace, tmp_path):
    code, out, err = run(trace, "--gemm", "4096,4096,1024", "--plot")
    assert (code, "hgemm_nn: fp16" in out, "\x1b" in out) == (0, True, False)
    assert "maximum clock" in err
    picture = tmp_path / "roofline.svg"
    assert run(trace, "--gemm", "4096,4096,1024", "-o", picture)[:2] == (0, "")
    assert picture.read_text(encoding="utf-8").startswith("<svg")


def test_a_roof_stays_in_its_picture():
    root = ET.fromstring(roofline.draw_svg([Point("far right", "fp16", 100, 400, 1_000, **H200)]))  # noqa: S314 - our own
    name = "{http://www.w3.org/2000/svg}"
    grid = [float(line.attrib["y1"]) for line in root.iter(f"{name}line")]
    corners = [corner.split(",") for line in root.iter(f"{name}polyline") for corner in line.attrib["points"].split()]
    assert all(min(grid) <= float(y) <= max(grid) for _, y in corners)


class TestPng:
    @staticmethod
    def stand_in(monkeypatch, *, fonts):
        def convert(*, svg_string, zoom, skip_system_fonts=False):
            assert ET.fromstring(svg_string).tag.endswith("svg")  # noqa: S314 - our own
            return b"\x89PNG" + (b" letters" if fonts and not skip_system_fonts else b"")

        monkeypatch.setitem(sys.modules, "resvg_py", SimpleNamespace(svg_to_bytes=convert))

    def test_the_picture_is_drawn(self, monkeypatch):
        self.stand_in(monkeypatch, fonts=True)
        assert roofline.convert_to_png(roofline.draw_svg(POINTS)) == b"\x89PNG letters"

    def test_a_picture_without_fonts_is_refused(self, monkeypatch):
        self.stand_in(monkeypatch, fonts=False)
        with pytest.raises(UsageError, match="no font"):
            roofline.convert_to_png(roofline.draw_svg(POINTS))

    def test_without_the_package_the_hint_names_it(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "resvg_py", None)
        with pytest.raises(UsageError, match="needs the package") as error:
            roofline.convert_to_png(roofline.draw_svg(POINTS))
        assert "nsys-insight[png]" in error.value.hint

    def test_the_installed_package_writes_a_png(self, trace, tmp_path):
        pytest.importorskip("resvg_py")
        picture = tmp_path / "roofline.PNG"
        code, out, _ = run(trace, "--gemm", "4096,4096,1024", "-o", picture)
        assert (code, out, picture.read_bytes()[:4]) == (0, "", b"\x89PNG")


@pytest.mark.parametrize("arguments", [["--plot"], ["--gemm", "64,64,64", "-o", "/no/such/folder/r.svg"]])
def test_a_drawing_that_is_not_possible_is_a_usage_error(trace, arguments):
    code, out, err = run(trace, *arguments)
    assert (code, out) == (2, "")
    assert "hint: " in err
