"""Pages of ncu are read correctly: every number in its base unit, in any locale and of any version."""

from __future__ import annotations

import csv
import io
import math
import re
from pathlib import Path

import pytest
from command_line import run
from hypothesis import given
from hypothesis import strategies as st

from nsys_insight.errors import TraceError
from nsys_insight.ingest.ncu.pages import (
    convert_unit,
    find_decimal_mark,
    merge_launches,
    parse,
    parse_number,
    read_details_names,
    read_file,
    report_name,
)

DATA = Path(__file__).parent / "data" / "ncu"
ZOO = DATA / "zoo_a.ncu.raw.csv"
DETAILS = DATA / "zoo_a.ncu.details.csv"

# An independent reading of units: the words themselves, no prefixes.
FACTORS = {
    "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12, "Mhz": 1e6, "Ghz": 1e9, "us": 1e3, "ms": 1e6,
    "Mbyte/s": 1e6, "Gbyte/s": 1e9, "Tbyte/s": 1e12, "Kbyte/block": 1e3, "Kbyte/cycle": 1e3, "%/Kbyte": 1e-3,
    "sector/ns": 1e9, "sector/us": 1e6, "sector/ms": 1e3, "s": 1e9, "Mbyte/block": 1e6,
}  # fmt: skip


def shared_files(pattern):
    folder = Path(__file__).parents[2] / "shared"
    return sorted(folder.glob(pattern))


RAW_FILES = [*sorted(DATA.glob("*.ncu.raw.csv")), *shared_files("traces/ncu/*.raw.csv")]
DETAILS_FILES = [
    *sorted(DATA.glob("*.ncu.details.csv")),
    *shared_files("*/*.details.csv"),
    *shared_files("traces/ncu/*.details.csv"),
]


class TestRawPage:
    @pytest.mark.parametrize("file", RAW_FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
    def test_every_numeric_cell_is_there_in_its_base_unit(self, file):
        header, units, *rows = csv.reader(io.StringIO(file.read_text(encoding="utf-8")))
        launches = {launch.ncu_id: launch for launch in read_file(file)}
        checked = 0
        for row in rows:
            metrics = launches[int(row[0])].metrics
            for name, unit, cell in list(zip(header, units, row, strict=True))[11:]:
                if re.fullmatch(r"-?\d+(\.\d+)?", cell):
                    expected = float(cell) * FACTORS.get(unit, 1)
                    assert math.isclose(metrics[name].value, expected, rel_tol=1e-12), name
                    checked += 1
                else:
                    assert metrics[name].value is None, (name, cell)
        assert checked > 50 * len(rows)

    def test_a_launch_is_identified(self):
        launch = read_file(ZOO)[12]
        assert (launch.report, launch.ncu_id, launch.process_id, launch.process_name) == (
            "zoo_a",
            12,
            465,
            "python3.12",
        )
        assert (launch.grid, launch.block) == ((65536, 1, 1), (128, 1, 1))
        assert (launch.device_id, launch.stream_id, launch.compute_capability) == (0, 7, "9.0")
        assert launch.kernel.startswith("void at::elementwise_kernel<128, 2,")

    def test_a_cell_that_is_not_a_number_is_text_or_unknown(self):
        metrics = read_file(ZOO)[0].metrics
        assert metrics["device__attribute_display_name"].text == "NVIDIA H200"
        assert metrics["device__attribute_display_name"].value is None
        assert metrics["derived_tempMetric4"] == (None, None, None)  # nan


class TestDetailsPage:
    @pytest.mark.parametrize("name", ["churn", "zoo_a"])
    def test_it_agrees_with_the_raw_page(self, name):
        self.agree(DATA / f"{name}.ncu.raw.csv", DATA / f"{name}.ncu.details.csv")

    @pytest.mark.parametrize("details", shared_files("traces/ncu/*.details.csv"), ids=lambda file: file.name)
    def test_complete_files_agree_with_the_raw_page(self, details):
        self.agree(details.with_name(details.name.replace("details", "raw")), details)

    @staticmethod
    def agree(raw_file, details_file):
        raw = {launch.key: launch for launch in read_file(raw_file)}
        compared_count = 0
        for row in csv.DictReader(io.StringIO(details_file.read_text(encoding="utf-8"))):
            metric = read_details_names().get((row["Section Name"], row["Metric Name"]))
            cell = row["Metric Value"].replace(",", "")
            if not metric or not re.fullmatch(r"-?\d+(\.\d+)?", cell):
                continue
            (launch,) = (candidate for candidate in raw.values() if candidate.ncu_id == int(row["ID"]))
            unit, factor = convert_unit(row["Metric Unit"])
            decimals = len(cell.partition(".")[2])
            value = launch.metrics[metric]
            assert value.value == pytest.approx(float(cell) * factor, abs=0.51 * factor / 10**decimals), metric
            assert value.unit == (unit or None), metric
            compared_count += 1
        assert compared_count > 40

    @pytest.mark.parametrize("file", DETAILS_FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
    def test_it_has_metrics_and_rules(self, file):
        launches = read_file(file)
        assert all(launch.rules for launch in launches)
        # The committed file of zoo_a has only the rules for most launches.
        times = [launch.metrics["gpu__time_duration.sum"] for launch in launches if launch.metrics]
        assert times
        assert all(time.value > 0 and time.unit == "ns" for time in times)

    def test_a_rule_carries_its_estimate(self):
        (launch,) = (launch for launch in read_file(DETAILS) if launch.ncu_id == 12)
        rule = next(rule for rule in launch.rules if rule.rule == "UncoalescedGlobalAccess")
        assert (rule.kind, rule.speedup_type, rule.speedup_pct) == ("OPT", "global", 76.95)
        assert "excessive sectors" in rule.description

    def test_both_pages_of_a_report_are_one_launch(self):
        launches = {}
        for file in (DETAILS, ZOO):
            merge_launches(launches, read_file(file))
        assert len(launches) == 16
        (launch,) = (launch for launch in launches.values() if launch.ncu_id == 12)
        assert launch.rules
        assert launch.metrics["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"].value == 524288
        assert launch.metrics["gpu__time_duration.sum"].value == 119616  # the raw page's, not 119.62 us

    def test_a_thousand_separator_is_not_a_decimal_point(self):
        for file in shared_files("foreign/copy_blocked*.csv"):
            (launch,) = read_file(file)
            assert launch.metrics["gpu__time_duration.sum"].value == 21_058_944
            assert launch.metrics["gpc__cycles_elapsed.max"].value == 12_319_469
            assert launch.metrics["dram__cycles_elapsed.avg.per_second"].value == 4_963_609_951.19


def page(header, *rows):
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows([header, *rows])
    return out.getvalue()


HEADER = [
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
]
LAUNCH_CELLS = ["0", "7", "app", "127.0.0.1", "k(int, float)", "1", "7", "(256, 1, 1)", "(2, 3, 4)", "0", "9.0"]
TIME, BYTES = "gpu__time_duration.sum", "dram__bytes_read.sum"


class TestVariants:
    """The same two values (2,500 ns and 1,234,567 bytes), in the formats that ncu prints."""

    def values(self, text):
        (launch,) = parse(text, "a.csv")
        assert (launch.kernel, launch.grid, launch.block) == ("k(int, float)", (2, 3, 4), (256, 1, 1))
        return launch.metrics[TIME].value, launch.metrics[BYTES].value

    @pytest.mark.parametrize(
        ("units", "cells"),
        [
            (["us", "Mbyte"], ["2.500000", "1.234567"]),
            (["ns", "byte"], ["2500", "1234567"]),
            (["nsecond", "byte"], ["2,500", "1,234,567"]),
            (["usecond", "Kbyte"], ["2.5", "1,234.567"]),
            (["us", "Kbyte"], ["2,500000", "1.234,567000"]),
            (["us", "Kbyte"], ["2,5", "1\u00a0234,567"]),
            (["us", "Kbyte"], ["2,5", "1\u202f234,567"]),
            (["ns", "byte"], ["2500 (3; 4; 5)", "1234567"]),
        ],
    )
    def test_units_and_locales(self, units, cells):
        text = page([*HEADER, TIME, BYTES], [""] * 11 + units, LAUNCH_CELLS + cells)
        assert self.values(text) == (2500, pytest.approx(1_234_567))

    def test_without_a_row_of_units_values_are_as_printed(self):
        assert self.values(page([*HEADER, TIME, BYTES], [*LAUNCH_CELLS, "2500", "1234567"])) == (2500, 1_234_567)

    def test_output_of_the_program_and_of_ncu_between_the_lines_is_skipped(self):
        lines = page([*HEADER, TIME, BYTES], [""] * 11 + ["us", "byte"], [*LAUNCH_CELLS, "2.5", "1234567"]).splitlines()
        text = "\n".join(
            [
                "==PROF== Connected to process 7",
                'it said "hello',
                lines[0],
                "==PROF== Profiling",
                lines[1],
                "",
                lines[2],
                "==PROF== Disconnected",
            ]
        )
        assert self.values(text) == (2500, 1_234_567)

    def test_with_nvtx_columns_before_the_kernels_name(self):
        ranges = [
            "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
            "Id:Domain:Start/Stop_Range:PL_Type",
        ]
        header = [*HEADER[:4], *ranges, *HEADER[4:], TIME, BYTES]
        row = [*LAUNCH_CELLS[:4], '"<default domain>:decode_step:none"', "", *LAUNCH_CELLS[4:], "2.5", "1234567"]
        assert self.values(page(header, [""] * 13 + ["us", "byte"], row)) == (2500, 1_234_567)

    def test_with_nvtx_columns_after_it(self):
        ranges = ["thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"]
        text = page([*HEADER, *ranges, TIME, BYTES], [""] * 12 + ["us", "byte"], [*LAUNCH_CELLS, "1", "2.5", "1234567"])
        (launch,) = parse(text, "a.csv")
        assert set(launch.metrics) == {TIME, BYTES}

    @pytest.mark.parametrize("cell", ["n/a", "N/A", "nan", "", "no data", "(!) nan", "(!) n/a", "inf"])
    def test_an_unmeasured_value_is_null(self, cell):
        (launch,) = parse(page([*HEADER, TIME, BYTES], [""] * 11 + ["us", "byte"], [*LAUNCH_CELLS, cell, "5"]), "a.csv")
        assert launch.metrics[TIME] == (None, "ns", None)

    def test_with_a_byte_order_mark_and_windows_line_ends(self, tmp_path):
        file = tmp_path / "a.ncu.raw.csv"
        text = page([*HEADER, TIME, BYTES], [""] * 11 + ["us", "byte"], [*LAUNCH_CELLS, "2.5", "1234567"])
        file.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
        (launch,) = read_file(file)
        assert launch.metrics[TIME].value == 2500

    def test_both_pages_in_one_text(self):
        details = page(
            [
                *HEADER,
                "Section Name",
                "Metric Name",
                "Metric Unit",
                "Metric Value",
                "Rule Name",
                "Rule Type",
                "Rule Description",
            ],
            [*LAUNCH_CELLS, "Occupancy", "Achieved Occupancy", "%", "42.5", "", "", ""],
            [*LAUNCH_CELLS, "SpeedOfLight", "", "", "", "SOLBottleneck", "OPT", 'a "quoted"\nsecond line'],
        )
        raw = page([*HEADER, TIME, BYTES], [""] * 11 + ["us", "byte"], [*LAUNCH_CELLS, "2.5", "1234567"])
        (launch,) = parse(raw + details, "a.csv")
        assert launch.metrics["sm__warps_active.avg.pct_of_peak_sustained_active"].value == 42.5
        assert launch.rules[0].description == 'a "quoted"\nsecond line'
        assert launch.rules[0].speedup_pct is None

    @pytest.mark.parametrize("text", ["", "a,b\n1,2\n", '"ID","Kernel Name"\n', "==ERROR== no kernels\n"])
    def test_a_file_that_is_not_a_page_is_an_error(self, text):
        with pytest.raises(TraceError, match=r"a\.csv is not a CSV page of ncu"):
            parse(text, "a.csv")


class TestCells:
    @given(st.floats(-1e12, 1e12, allow_nan=False), st.sampled_from([0, 2, 3, 6]))
    def test_a_number_is_read_in_either_locale(self, value, decimals):
        english = f"{value:,.{decimals}f}"
        german = english.translate(str.maketrans(",.", ".,"))
        expected = pytest.approx(float(f"{value:.{decimals}f}"))
        assert parse_number(english, ".") == expected
        assert parse_number(german, ",") == expected

    def test_the_decimal_mark_is_found_from_unambiguous_numbers(self):
        assert find_decimal_mark(["1,234", "12,5"]) == ","
        assert find_decimal_mark(["1,234", "12.5"]) == "."
        assert find_decimal_mark(["1,234", "5"]) == "."

    @pytest.mark.parametrize(
        ("unit", "base", "factor"),
        [
            ("", "", 1), ("%", "%", 1), ("us", "ns", 1e3), ("second", "ns", 1e9), ("Ghz", "hz", 1e9), ("hz", "hz", 1),
            ("Kbyte", "byte", 1e3), ("Gbyte/s", "byte/s", 1e9), ("byte/second", "byte/s", 1),
            ("sector/us", "sector/s", 1e6),
            ("Kbyte/block", "byte/block", 1e3), ("%/Kbyte", "%/byte", 1e-3), ("inst/cycle", "inst/cycle", 1),
            ("register/thread", "register/thread", 1), ("Msomething", "Msomething", 1),
        ],
    )  # fmt: skip
    def test_units(self, unit, base, factor):
        assert convert_unit(unit) == (base, pytest.approx(factor))

    @pytest.mark.parametrize(
        "file", ["d.ncu.raw.csv", "d.ncu.details.csv", "d.ncu-rep", "d.csv", "d_raw.csv", "d-details.csv"]
    )
    def test_the_files_of_a_report_have_one_name(self, file):
        assert report_name(file) == "d"


class TestValuesOutOfRange:
    """A value that cannot be used is unknown, and the report on the file is written."""

    def test_names_and_sizes(self):
        text = page(
            ["ID", "Kernel Name", "Block Size", "Grid Size", "CC", "gpu__time_duration.sum"],
            ["", "", "", "", "", "s"],
            ["0", " ", "(0, 1025, 1)", "(99999999999, 65536, 65535)", "n/a", "1e300"],
        )
        (launch,) = parse(text, "a.csv")
        assert (launch.kernel, launch.compute_capability) == ("(no name)", None)
        assert (launch.block, launch.grid) == ((None, 1025, 1), (None, None, 65535))
        assert launch.metrics["gpu__time_duration.sum"] == (None, "ns", None)

    @pytest.mark.parametrize("pct", ["nan", "", "-1", "1e300", "inf"])
    def test_an_estimate_without_a_percentage_is_none(self, tmp_path, pct):
        header = [
            "ID", "Kernel Name", "Block Size", "Grid Size", "CC", "Section Name", "Metric Name", "Metric Unit",
            "Metric Value", "Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup",
        ]  # fmt: skip
        launch = ["0", "k", "(32, 1, 1)", "(1, 1, 1)", "9.0", "S"]
        file = tmp_path / "a.ncu.details.csv"
        file.write_text(page(header, [*launch, "", "", "", "Rule", "OPT", "Do it.", "global", pct]))
        assert read_file(file)[0].rules[0][-2:] == (None, None)
        if pct == "nan":  # from here on, all are equal
            assert run("ncu", "report", file).returncode == 0
