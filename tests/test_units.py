"""Names give the units, scaling keeps the value of a number, and flags take durations and sizes."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsys_insight.errors import UsageError
from nsys_insight.render.fields import build_fields
from nsys_insight.session.session import Session
from nsys_insight.text import units
from nsys_insight.text.units import label_of, parse_bytes, parse_duration, scale_for, spread_too_wide, unit_of

TRACE = Path(__file__).parents[1] / "sample_traces" / "decode_eager.sqlite"

COLUMNS = ["total_ns", "start_ns", "free_bytes", "bytes_per_s", "tokens_per_s", "wall_pct", "hit_ratio", "calls"]
# All quantities of a trace are inside. Beyond these sizes, a scaled number would exceed the range of a float.
sizes = st.floats(1e-200, 1e200)
numbers = st.one_of(st.integers(-(2**63), 2**63 - 1), sizes, sizes.map(lambda size: -size))


def scale_texts(name, *values):
    scale = scale_for(name, values)
    return [scale.unit, *map(scale.text, values)]


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("total_ns", "ns"),
        ("ns", "ns"),
        ("free_bytes", "bytes"),
        ("wall_pct", "%"),
        ("bytes_per_s", "bytes/s"),
        ("h2d_bytes_per_s", "bytes/s"),
        ("clock_hz", "Hz"),
        ("decoded_tokens_per_s", "tokens/s"),
        ("hit_ratio", "ratio"),
        ("kernel_count", "count"),
        ("calls", ""),
        ("columns", ""),  # ends in "ns", but not in "_ns"
        ("sum(duration_ns)", ""),
    ],
)
def test_the_unit_is_the_suffix_of_the_name(name, unit):
    assert unit_of(name) == unit


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("total_ns", "total"),
        ("kernel_time_pct", "kernel time"),
        ("h2d_bytes_per_s", "h2d"),
        ("tokens_per_s", "tokens/s"),
        ("hit_ratio", "hit ratio"),
        ("kernel_count", "kernel count"),
        ("bytes_per_s", "rate"),
        ("ns", "ns"),
        ("count_star()", "count_star()"),
    ],
)
def test_a_label_leaves_out_the_unit_of_the_header(name, label):
    assert label_of(name) == label


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("total_ns", [2_122_333, 819_000, 346_000], ["ms", "2.122", "0.819", "0.346"]),
        ("total_ns", [999], ["ns", "999"]),
        ("total_ns", [500_000], ["µs", "500.0"]),
        ("total_ns", [72_000_000_000, 12_000_000_000], ["s", "72.0", "12.0"]),
        # One outlier must not hide the other numbers.
        ("total_ns", [5_000_000_000, 2_000, 1_500], ["µs", "5,000,000.00", "2.00", "1.50"]),
        ("free_bytes", [1024, 1536], ["KiB", "1.00", "1.50"]),
        ("free_bytes", [3 * 2**30], ["GiB", "3.00"]),
        ("h2d_bytes_per_s", [24.6e9], ["GB/s", "24.6"]),
        ("wall_pct", [41.26, 17.0, 0.004, 0], ["%", "41.3", "17.0", "0.004", "0"]),
        ("hit_ratio", [0.5, 2.0, 0.001], ["", "0.50", "2.00", "0.001"]),
        ("calls", [1234567, 3], ["", "1,234,567", "3"]),
        ("calls", [2.0, None], ["", "2", "-"]),
        ("kernel_count", [1234], ["", "1,234"]),
    ],
)
def test_a_column_has_one_unit_that_fits_its_numbers(name, values, expected):
    assert scale_texts(name, *values) == expected


def test_points_in_time_stay_distinct_far_from_zero():
    assert scale_texts("start_ns", 90_001_234_567, 90_001_237_890) == ["ms", "90,001.235", "90,001.238"]


def test_an_id_is_not_scaled():
    assert scale_texts("correlation_id", 4294967295) == ["", "4294967295"]
    assert scale_texts("grid", 4294967295) == ["", "4,294,967,295"]


def test_unknown_is_a_dash_and_never_zero():
    assert scale_texts("total_ns", None, math.nan, 5) == ["ns", "-", "-", "5"]
    assert scale_texts("total_ns", None) == ["ns", "-"]


@given(st.sampled_from(COLUMNS), st.lists(numbers, min_size=1, max_size=6))
def test_a_nonzero_number_is_never_shown_as_zero(name, values):
    scale = scale_for(name, values)
    for value in values:
        assert (float(scale.text(value).replace(",", "")) == 0) == (value == 0)


@given(st.sampled_from(COLUMNS), st.lists(numbers, min_size=1, max_size=6))
def test_a_shown_number_is_off_by_less_than_a_tenth(name, values):
    scale = scale_for(name, values)
    for value in values:
        assert float(scale.text(value).replace(",", "")) * scale.divisor == pytest.approx(value, rel=0.1)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("250", 250),
        ("0", 0),
        ("250ns", 250),
        ("5us", 5_000),
        ("5 µs", 5_000),  # the micro sign
        ("5\u03bcs", 5_000),  # the Greek letter
        ("1.5ms", 1_500_000),
        (".5ms", 500_000),
        ("2s", 2_000_000_000),
        (" 3.000000001s ", 3_000_000_001),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_a_duration_is_a_number_and_a_unit(text, ns):
    assert parse_duration(text) == ns


@pytest.mark.parametrize(
    "text", ["", "ms", "5 apples", "-5us", "1e3", "1.2.3s", "5m", "0x10", "٣s", "9223372036854775808"]
)
def test_any_other_text_is_a_usage_error_with_an_example(text):
    with pytest.raises(UsageError) as caught:
        parse_duration(text, flag="--min-gap")
    assert caught.value.message == f"--min-gap takes a duration, not {text!r}"
    assert "1.5ms" in caught.value.hint


@given(st.integers(0, 2**63 - 1), st.sampled_from([("ns", 0), ("us", 3), ("ms", 6), ("s", 9)]))
def test_no_nanosecond_is_lost_between_units(ns, unit):
    word, decimals = unit
    units, fraction = divmod(ns, 10**decimals)
    assert parse_duration(f"{units}.{fraction:0{decimals}}{word}" if decimals else f"{units}{word}") == ns


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512", 512),
        ("5.1GB", 5_100_000_000),
        ("5.1 gb", 5_100_000_000),
        ("16GiB", 16 * 2**30),
        ("4.8TB/s", 4_800_000_000_000),
        ("100k", 100_000),
    ],
)
def test_sizes_are_read_with_their_units(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "5XB", "1e9", "9999999999TB"])
def test_an_invalid_size_is_refused(text):
    with pytest.raises(UsageError, match="--model-bytes"):
        parse_bytes(text, flag="--model-bytes")


def test_sizes_of_very_different_magnitude_have_separate_units():
    def hides(name, *sizes):
        return spread_too_wide(name, sizes, scale_for(name, sizes))

    assert hides("total_bytes", 5 << 20, 5 << 20, 80, None)
    assert not hides("total_bytes", 5 << 20, 80 << 10, 0, None)
    assert not hides("total_ns", 5_000_000, 5_000_000, 80)


def test_sql_and_python_write_the_same_time_texts():
    edge_times = [
        edge * factor for edge in (1, 1e3, 1e6, 1e9, 1e12) for factor in (0.9994, 0.9996, 1, 1.004, 1.2347, 25)
    ]
    times = [0.0, 0.25, *edge_times, *(-time for time in edge_times), *range(1, 1_000_000_000, 12_345_678)]
    with Session(TRACE, use_cache=False) as trace:
        rows = trace.rows(f"SELECT time_text(unnest({times})) AS text")
    assert [row.text for row in rows] == [units.time_text(time) for time in times]


def test_compared_values_have_one_unit():
    assert units.values("total_ns", [2_500_000, 1_000_900, None]) == ["2.50 ms", "1.00 ms", "-"]
    assert units.values("tokens_per_s", [1500]) == [units.value("tokens_per_s", 1500)] == ["1,500"]
    assert [units.value("a_ns", 2500), units.time_text(2500)] == ["2.50 µs", "2.5 µs"]


@pytest.mark.parametrize(
    ("ns", "text"), [(5_000_000, "5ms"), (1_500_000, "1500us"), (7, "7"), (0, "0"), (-2 * 10**9, "-2s")]
)
def test_an_exact_duration_is_short(ns, text):
    assert units.exact_duration(ns) == text


@given(st.integers(0, 2**63 - 1))
def test_an_exact_duration_is_read_back(ns):
    assert parse_duration(units.exact_duration(ns)) == ns


@pytest.mark.parametrize(("text", "seconds"), [("20", 20), (" 1.5 ", 1.5), ("5m", 300), ("2min", 120), ("250ms", 0.25)])
def test_a_plain_number_of_a_time_limit_is_seconds(text, seconds):
    assert units.parse_seconds(text) == seconds


def test_times_of_a_table_have_its_largest_unit_where_that_leaves_three_digits():
    query = """
    SELECT * FROM (VALUES (2770000, 366000, 3300, NULL), (2500000, 365000, 2100, NULL))
    AS t(duration_ns, gpu_busy_ns, launch_ns, captured_ns)"""
    with Session(TRACE) as trace:
        answer = trace.query(query)
        fields = build_fields(answer, answer.rows(), full_names=False)
    assert [(field.unit, field.cells[0]) for field in fields] == [
        ("ms", "2.77"), ("ms", "0.366"), ("µs", "3.30"), ("ms", "-")
    ]  # fmt: skip
