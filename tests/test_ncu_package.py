"""A report of ncu is read with NVIDIA's package where ncu is missing. A small package stands for NVIDIA's here."""

from __future__ import annotations

import json

import pytest
from command_line import run
from sweeps import sweep

from nsys_insight.errors import ToolError, TraceError
from nsys_insight.ingest.ncu import report_blocks, report_reader
from nsys_insight.ingest.ncu.pages import Metric
from nsys_insight.ingest.ncu.tool import read_pages

PACKAGE = """
METRICS = {
    "launch__grid_dim_x": (64.0, ""), "launch__grid_dim_y": (1.0, ""), "launch__grid_dim_z": (1.0, ""),
    "launch__block_dim_x": (256.0, "block"), "launch__block_dim_y": (1.0, ""), "launch__block_dim_z": (1.0, ""),
    "launch__context_id": (1, ""), "launch__stream_id": (7, ""), "launch__device_id": (0, ""),
    "device__attribute_compute_capability_major": (9, ""), "device__attribute_compute_capability_minor": (0, ""),
    "device__attribute_display_name": ("NVIDIA H100", ""), "gpu__time_duration.sum": (84.5, "us"), "lost": (None, ""),
}

class Metric:
    def __init__(self, value, unit):
        self.value, self.unit, self.has_value = (lambda: value), (lambda: unit), (lambda: value is not None)

class Action:
    NameBase_DEMANGLED = 0
    def name(self, _):
        return "axpy(float *)"
    def metric_names(self):
        return tuple(METRICS)
    def metric_by_name(self, name):
        return Metric(*METRICS[name])

class Range:
    def num_actions(self):
        return 2
    def action_by_idx(self, _):
        return Action()

class Report:
    def __init__(self, path):
        self.ranges = 1 if open(path, "rb").read(3) == b"NVR" else 0
    def num_ranges(self):
        return self.ranges
    def range_by_idx(self, _):
        return Range()

load_report = Report
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Install the package, on a machine without ncu; give the folder of the reports."""
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "ncu_report.py").write_text(PACKAGE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"), prepend=":")
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("nsys_insight.ingest.ncu.tool._INSTALL_FOLDERS", ())
    return tmp_path


def test_launches_and_metrics_are_those_of_the_package(package):
    report = package / "axpy.ncu-rep"
    report.write_bytes(b"NVR")
    first, second = read_pages(report)
    assert (first.ncu_id, second.ncu_id) == (0, 1)
    assert (first.report, first.kernel) == ("axpy", "axpy(float *)")
    assert (first.grid, first.block) == ((64, 1, 1), (256, 1, 1))
    assert (first.stream_id, first.context_id, first.device_id, first.compute_capability) == (7, 1, 0, "9.0")
    assert first.metrics["gpu__time_duration.sum"] == Metric(84_500.0, "ns")
    assert first.metrics["device__attribute_display_name"] == Metric(None, None, "NVIDIA H100")
    assert "lost" not in first.metrics


def test_modules_of_the_current_folder_are_not_run(package, monkeypatch):
    report = package / "axpy.ncu-rep"
    report.write_bytes(b"NVR")
    (package / "here" / "nsys_insight").mkdir(parents=True)
    (package / "here" / "nsys_insight" / "__init__.py").write_text("raise SystemExit(5)")
    monkeypatch.chdir(package / "here")
    assert len(read_pages(report)) == 2


def test_a_report_that_the_package_cannot_read_is_one_sentence(package):
    report = package / "cut.ncu-rep"
    report.write_bytes(b"")
    with pytest.raises(ToolError, match="cannot be read with the package ncu-report"):
        read_pages(report)


def test_without_ncu_and_package_the_hint_has_both(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("nsys_insight.ingest.ncu.tool._INSTALL_FOLDERS", ())
    monkeypatch.setattr(report_reader, "is_installed", lambda: False)
    with pytest.raises(ToolError) as failure:
        read_pages(tmp_path / "axpy.ncu-rep")
    assert "nsys-insight[ncu]" in failure.value.hint
    assert "ncu --import" in failure.value.hint


def write_metrics(package, *lines):
    """Let the package read other metrics than usual."""
    with (package / "packages" / "ncu_report.py").open("a") as module:
        module.writelines(f"{line}\n" for line in lines)
    report = package / "odd.ncu-rep"
    report.write_bytes(b"NVR")
    return report


# By metric: the value, which is not a number of 64 bits in its base unit.
UNUSABLE = ["float('nan')", "float('inf')", "-float('inf')", "1e300", "10**400", "2**64", "'nan'", "1.7e308"]


@pytest.mark.parametrize("text", UNUSABLE)
def test_a_value_that_cannot_be_used_is_unknown(package, text):
    names = ["gpu__time_duration.sum", "launch__grid_dim_x"]
    report = write_metrics(package, *(f"METRICS['{name}'] = ({text}, 's')" for name in names))
    launch, _ = read_pages(report)
    assert launch.metrics["gpu__time_duration.sum"] == Metric(None, "ns")
    assert launch.grid == (None, 1, 1)


@pytest.mark.parametrize("text", ["-1", "1.5", "2**63", "2**64 - 1", "float('nan')", "'seven'"])
def test_an_id_or_size_that_is_no_such_integer_is_unknown(package, text):
    names = ["launch__stream_id", "launch__block_dim_x", "device__attribute_compute_capability_major"]
    launch, _ = read_pages(write_metrics(package, *(f"METRICS['{name}'] = ({text}, '')" for name in names)))
    assert (launch.stream_id, launch.block, launch.compute_capability) == (None, (None, 1, 1), None)


def test_missing_names_and_other_types_are_unknown(package):
    report = write_metrics(
        package, "METRICS |= {None: (1, ''), '': (2, ''), 'no_unit': (3, None), 'a list': ([4], '')}",
        "Action.name = lambda *_: None",
    )  # fmt: skip
    launch, _ = read_pages(report)
    assert launch.kernel == "(no name)"
    assert launch.metrics["no_unit"] == Metric(3.0, None)
    assert not {"", "null", "a list"} & launch.metrics.keys()


def test_texts_that_are_not_utf_8_are_escaped(package):
    metric = r"METRICS['clock\udcfe'] = ('\udcfd', '\udcfc')"
    report = write_metrics(package, r"Action.name = lambda *_: 'k\udcff'", metric)
    launch, _ = read_pages(report)
    assert launch.kernel == r"k\udcff"
    assert launch.metrics[r"clock\udcfe"] == Metric(None, r"\udcfc", r"\udcfd")


@pytest.mark.parametrize("format_name", ["table", "json", *sweep(["markdown"])])
def test_a_report_without_usable_values_prints_no_number_for_them(package, format_name):
    report = write_metrics(
        package, "for name in METRICS: METRICS[name] = (float('nan'), '')", r"Action.name = lambda *_: '\udcff'"
    )
    result = run("ncu", "report", str(report), "--format", format_name)
    assert result.returncode == 0, result.stderr
    assert "0 ns" not in result.stdout
    assert "0%" not in result.stdout.partition("Targets")[0]
    assert "None" not in result.stdout
    if format_name == "json":
        kernel = json.loads(result.stdout)["kernels"][0]
        assert (kernel["duration_ns"], kernel["share_pct"]) == (None, None)


def test_a_launch_without_name_and_metrics_is_an_error_of_the_file(package):
    report = write_metrics(package, "METRICS.clear()", "Action.name = lambda *_: None")
    with pytest.raises(TraceError, match="launch 1 of 2 has neither a name nor a metric") as failure:
        read_pages(report)
    assert failure.value.hint


def number(value):
    """Write a number as a varint."""
    return bytes([value & 0x7F | 0x80]) + number(value >> 7) if value >> 7 else bytes([value])


def block(payload, *fields):
    """Write a block of a report: the size of its header, the header, and the payload."""
    header = b"\x08\x00\x10\x01" + b"".join(fields) + b"\x28" + number(len(payload))
    return len(header).to_bytes(4, "little") + header + payload


class TestCutReports:
    # A text, numbers of 4 and of 8 bytes, and a large number are skipped in the header.
    CONTENT = (
        b"NVR\0\x02\0\0\0\x08\x07" + block(b"a" * 300, b"\x22\x03\x28\x01\x01", b"\x3d\x28\x01\x01\x01")
        + block(b"") + block(b"b" * 20, b"\x41" + bytes(8), b"\x48" + number(2**64 - 1))
    )  # fmt: skip

    def write(self, package, content):
        report = package / "axpy.ncu-rep"
        report.write_bytes(content)
        return report

    def test_a_complete_report_is_read(self, package):
        assert len(read_pages(self.write(package, self.CONTENT))) == 2

    def test_every_cut_but_one_between_blocks_is_an_error_of_the_file(self, package):
        report, uncut_lengths = package / "axpy.ncu-rep", []
        for length in range(4, len(self.CONTENT)):
            report.write_bytes(self.CONTENT[:length])
            if not report_blocks.is_cut(report):
                uncut_lengths.append(length)
        lengths = [10, 10 + len(block(b"a" * 300, bytes(10)))]
        assert uncut_lengths == [*lengths, lengths[1] + len(block(b""))]

    @pytest.mark.parametrize("page", ["package", "ncu"])
    def test_the_error_says_what_is_missing(self, package, page):
        if page == "ncu":
            (package / "ncu").write_text("#!/bin/sh\nexit 1\n")
            (package / "ncu").chmod(0o755)
        with pytest.raises(TraceError, match="ends within a block, so launches or metrics are missing") as failure:
            read_pages(self.write(package, self.CONTENT[:-1]))
        assert failure.value.hint.startswith("copy it again")

    @pytest.mark.parametrize(
        "content", [b"", b"NVR", b"NVR\0\x02\0\0\0\x08\x07\x02\0\0\0\xff\xff", b"NVR\0\0\0\0\0\x01\0\0\0\x07"]
    )
    def test_unreadable_blocks_are_not_called_cut(self, package, content):
        assert not report_blocks.is_cut(self.write(package, content))

    def test_a_missing_report_is_not_called_cut(self, package):
        assert not report_blocks.is_cut(package / "missing.ncu-rep")
