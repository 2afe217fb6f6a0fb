"""The roofline as it is drawn: every kernel where its numbers say, under the roofs."""

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
FOUND = [
    Point("gemm<a & b>", "fp16", 1_000, 500, 1_000, **H200),
    Point("at the ridge", "fp16", 1_000 / 4.8, 1_000, 1_000, **H200),
    Point("add", "fp32", 0.1, 0.48, 67, **H200),
]


def run(*arguments):
    done = command_line.run("roofline", *arguments, env={"COLUMNS": "80"})
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def trace(tmp_path):
    made = Trace()
    made.thread().launch("hgemm_nn", runs=1_000_000)
    return made.write(tmp_path / "trace.sqlite")


def test_a_mark_stands_where_the_axes_say():
    lines = roofline.plot(FOUND, width=80, height=21).split("\n")
    rows = [line.partition("│")[2] for line in lines[1:22]]
    at = {mark: (row.index(mark), number) for number, row in enumerate(rows) for mark in "012" if mark in row}
    labels = {float(line[:7]): number for number, line in enumerate(lines[1:22]) if line[:7].strip()}
    assert labels[1_000] == at["1"][1]
    assert labels[1_000] < at["0"][1] < labels[100]
    assert labels[1] < at["2"][1] < labels[0.1]
    # Memory's roof goes up to the ridge and through it the kernel that is on both roofs; right of it is the peak's.
    assert set(rows[at["1"][1]][at["1"][0] + 1 :]) == {"─"}
    assert rows[at["2"][1]][at["2"][0] - 1 : at["2"][0] + 2].strip("/ ") == "2"
    assert max(map(len, lines)) <= 80


def test_the_picture_is_xml_and_its_circles_stand_where_the_axes_say():
    root = ET.fromstring(roofline.svg(FOUND))  # noqa: S314 - our own
    name = "{http://www.w3.org/2000/svg}"
    circles = [circle for circle in root.iter(f"{name}circle") if circle.find(f"{name}title") is not None]
    (x0, y0), (x1, y1), (x2, y2) = ((float(c.attrib["cx"]), float(c.attrib["cy"])) for c in circles)
    decade = (x0 - x1) / math.log10(4.8)
    assert x1 - x2 == pytest.approx(decade * math.log10(1_000 / 4.8 / 0.1), abs=0.5)
    assert (y2 - y1) / (y0 - y1) == pytest.approx(math.log10(1_000 / 0.48) / math.log10(2), rel=0.01)
    corners = {corner for line in root.iter(f"{name}polyline") for corner in line.attrib["points"].split()}
    assert f"{x1:.1f},{y1:.1f}" in corners
    assert circles[0].find(f"{name}title").text.startswith("gemm<a & b>: fp16")


def test_as_characters_and_as_a_file(trace, tmp_path):
    code, out, err = run(trace, "--gemm", "4096,4096,1024", "--plot")
    assert (code, "hgemm_nn: fp16" in out, "\x1b" in out) == (0, True, False)
    assert "maximum clock" in err
    picture = tmp_path / "roofline.svg"
    assert run(trace, "--gemm", "4096,4096,1024", "-o", picture)[:2] == (0, "")
    assert picture.read_text(encoding="utf-8").startswith("<svg")


def test_a_roof_stays_in_its_picture():
    root = ET.fromstring(roofline.svg([Point("far right", "fp16", 100, 400, 1_000, **H200)]))  # noqa: S314 - our own
    name = "{http://www.w3.org/2000/svg}"
    grid = [float(line.attrib["y1"]) for line in root.iter(f"{name}line")]
    corners = [corner.split(",") for line in root.iter(f"{name}polyline") for corner in line.attrib["points"].split()]
    assert all(min(grid) <= float(y) <= max(grid) for _, y in corners)


class TestPng:
    @staticmethod
    def stand_in(monkeypatch, *, fonts):
        def draws(*, svg_string, zoom, skip_system_fonts=False):
            assert ET.fromstring(svg_string).tag.endswith("svg")  # noqa: S314 - our own
            return b"\x89PNG" + (b" letters" if fonts and not skip_system_fonts else b"")

        monkeypatch.setitem(sys.modules, "resvg_py", SimpleNamespace(svg_to_bytes=draws))

    def test_the_picture_is_drawn(self, monkeypatch):
        self.stand_in(monkeypatch, fonts=True)
        assert roofline.png(roofline.svg(FOUND)) == b"\x89PNG letters"

    def test_a_picture_without_letters_is_none(self, monkeypatch):
        self.stand_in(monkeypatch, fonts=False)
        with pytest.raises(UsageError, match="no font"):
            roofline.png(roofline.svg(FOUND))

    def test_without_the_package_it_is_said_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "resvg_py", None)
        with pytest.raises(UsageError, match="needs the package") as error:
            roofline.png(roofline.svg(FOUND))
        assert "nsys-insight[png]" in error.value.hint

    def test_the_package_itself_where_it_is_installed(self, trace, tmp_path):
        pytest.importorskip("resvg_py")
        picture = tmp_path / "roofline.PNG"
        code, out, _ = run(trace, "--gemm", "4096,4096,1024", "-o", picture)
        assert (code, out, picture.read_bytes()[:4]) == (0, "", b"\x89PNG")


@pytest.mark.parametrize("arguments", [["--plot"], ["--gemm", "64,64,64", "-o", "/no/such/folder/r.svg"]])
def test_what_cannot_be_drawn_is_said(trace, arguments):
    code, out, err = run(trace, *arguments)
    assert (code, out) == (2, "")
    assert "hint: " in err
