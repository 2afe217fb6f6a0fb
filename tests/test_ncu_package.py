"""A report of ncu is read with NVIDIA's package where ncu is missing. A small package stands for NVIDIA's here."""

from __future__ import annotations

import pytest

from nsys_insight.errors import ToolError
from nsys_insight.ingest.ncu import report_reader
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
