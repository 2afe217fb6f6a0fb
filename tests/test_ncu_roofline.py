"""The roofline from ncu's counters: against known sizes, ncu's own shares of its peaks, and in a trace."""

from __future__ import annotations

import csv
from pathlib import Path

import command_line
import pytest
from synthetic import Trace

import nsys_insight
from nsys_insight.errors import UsageError
from nsys_insight.ingest.ncu import store
from nsys_insight.ingest.ncu.pages import Launch, Metric
from nsys_insight.ncu import roofline
from nsys_insight.ncu.data import NcuData
from nsys_insight.render import roofline as drawing

# 14 PyTorch operations on an H200, profiled with ncu --set full and reduced to the columns that are read here.
DATA = Path(__file__).parent / "data" / "ncu" / "zoo_a.operations.csv"
N = 8192


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    path = store.write(store.read_all([DATA]), tmp_path_factory.mktemp("ncu") / "zoo.ncu.duckdb")
    with NcuData(path) as data:
        yield data


@pytest.fixture(scope="module")
def rows(zoo):
    return roofline.answer(zoo).dicts()


@pytest.fixture(scope="module")
def ncu_columns():
    """Return ncu's own columns by kernel."""
    with DATA.open(newline="", encoding="utf-8") as file:
        return {row["Kernel Name"]: row for row in csv.DictReader(file) if row["ID"]}


def select_row(rows, word):
    (row,) = [row for row in rows if word in row["name"]]
    return row


# Operations


@pytest.mark.parametrize(
    ("word", "precision", "flop"),
    [
        ("tf32f32", "tf32", 2 * 4096**3),
        ("64x8_64x16_1x4", "fp16", 2 * 64**3),
        ("sdpa", "fp16", 4 * 4 * 16 * 4096**2 * 128),
        ("MulFunctor", "fp32", 1 << 28),
        # A tile of 320 does not divide 8192: 26 of them compute 8320 rows, 1.6% more.
        ("320x128", "fp16", 2 * N * N * 8320),
    ],
)
def test_operations_are_those_of_the_size(rows, word, precision, flop):
    row = select_row(rows, word)
    assert row["precision"] == precision
    assert row["flop_count"] == pytest.approx(flop, rel=1e-6)


def test_operations_in_other_precisions_are_counted_separately(rows):
    # The softmax of attention is fp32; a product without epilogue has almost no other operations.
    assert 0 < select_row(rows, "sdpa")["other_flop_count"] < 0.01 * select_row(rows, "sdpa")["flop_count"]
    assert select_row(rows, "320x128")["other_flop_count"] == 0


def test_multiply_adds_on_zeros_that_fill_registers_are_no_operations(rows):
    """A gather has no arithmetic, but 117 million HFMA2: its operations cannot be determined from them."""
    for word in ("index_elementwise", "direct_copy"):
        row = select_row(rows, word)
        assert (row["precision"], row["flop_count"], row["roof"]) == (None, None, None)
        assert row["bandwidth_pct"] > 0


def test_a_kernel_without_operations_has_a_count_of_0(rows):
    row = select_row(rows, "clamp")
    assert (row["flop_count"], row["precision"], row["roof"]) == (0, None, "memory")


def test_shares_of_the_peak_are_ncus_own(rows, ncu_columns):
    # ncu's peak of these two counters is for sparse matrices: twice the dense peak.
    for word, column in (("320x128", "fp16"), ("tf32f32", "tf32_dst_fp32")):
        row = select_row(rows, word)
        ncu_pct = float(ncu_columns[row["name"]][f"sm__ops_path_tensor_src_{column}.sum.pct_of_peak_sustained_elapsed"])
        assert row["compute_pct"] == pytest.approx(2 * ncu_pct, rel=0.01)
    for row in rows:
        ncu_pct = float(ncu_columns[row["name"]]["gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"])
        if row["duration_ns"] > 20_000:
            assert row["bandwidth_pct"] == pytest.approx(ncu_pct, rel=0.1)


# Bytes


def test_an_element_wise_kernel_moves_each_element_twice_at_every_level(rows):
    row = select_row(rows, "MulFunctor")
    for column in ("bytes", "l2_bytes", "l1_bytes"):
        assert row[column] == pytest.approx(2 * 4 * (1 << 28), rel=0.02)


def test_a_matrix_product_reads_more_from_l2_than_from_dram(rows):
    row = select_row(rows, "320x128")
    assert row["l2_bytes"] > 5 * row["bytes"]
    assert row["l2_intensity_ratio"] < row["intensity_ratio"]


def test_the_roof_is_the_lower_of_the_two(rows):
    assert {select_row(rows, word)["roof"] for word in ("320x128", "tf32f32", "sdpa")} == {"compute"}
    assert {select_row(rows, word)["roof"] for word in ("MulFunctor", "splitK_NNT", "reduce_kernel<512")} == {"memory"}
    for row in rows:
        if row["roof"]:
            assert row["roof_pct"] == row["compute_pct" if row["roof"] == "compute" else "bandwidth_pct"]


@pytest.mark.parametrize(
    ("file", "kernel", "precision", "flop"),
    [
        # Products of known M, N and K, by kernels of tune.cu and by libraries: ncu --set full on an H200.
        ("tune", "gemm_0", "fp32", 2 * 2048**3),
        ("tune", "gemm_2", "fp32", 2 * 2048**3),
        ("tune", "gemm_4", "fp32", 2 * 2048**3),
        ("tune", "gemm_wmma", "fp16", 2 * 2048**3),
        ("library", "simt_sgemm", "fp32", 2 * 2048**3),
        ("library", "tilesize256x128x8", "fp32", 2 * 4096**3),
        ("library", "tf32f32", "tf32", 2 * 2048**3),
        ("library", "hsh_256x128", "fp16", 2 * 4096 * 2048 * 1024),
        ("library", "tst_256x128", "fp16", 2 * 2048 * 4096 * 1024),
        ("library", "f64f64", "fp64_tensor", 2 * 1024**3),
        ("library", "algo2_TNT", "fp8", 2 * 2048 * 2048 * 1024),
        ("library", "gemm_s8", "int8", 2 * 2048 * 2048 * 1024),
    ],
)
def test_operations_of_a_product_are_twice_m_n_k(products, file, kernel, precision, flop):
    row = select_row(products[file], kernel)
    assert row["precision"] == precision
    assert row["flop_count"] == pytest.approx(flop, rel=0.01)


def test_captures_of_several_sizes_make_one_table(products):
    flop_by_grid = {row["grid"]: row["flop_count"] for row in products["sweep"]}
    assert flop_by_grid == {
        f"{n // 128}x{n // 128}x1": pytest.approx(2 * n**3, rel=0.01) for n in (512, 1024, 2048, 4096)
    }


@pytest.fixture(scope="module")
def products(tmp_path_factory):
    folder, rows_by_file = tmp_path_factory.mktemp("products"), {}
    for name in ("tune", "sweep", "library"):
        path = store.write(store.read_all([DATA.parent / f"{name}.raw.csv"]), folder / f"{name}.ncu.duckdb")
        with NcuData(path) as data:
            rows_by_file[name] = roofline.answer(data).dicts()
    return rows_by_file


# Ceilings of the caches


def test_without_the_counters_of_the_caches_their_ceilings_are_unknown(rows):
    """This file has few columns: the ceiling is the higher of the two known shares."""
    for row in rows:
        assert row["l2_bandwidth_pct"] is None
        assert row["ceiling_pct"] == max(filter(None, (row["compute_pct"], row["bandwidth_pct"])))


def test_shared_memory_and_scattered_access_are_seen_at_the_ceiling_of_l1(products):
    """Known by construction: rows in 32 sectors, tiles in shared memory, and a coalesced copy."""
    for kernel, min_pct in (("gemm_0", 95), ("gemm_2", 90)):
        row = select_row(products["tune"], kernel)
        assert (row["ceiling"], row["ceiling_pct"]) == ("L1", row["l1_passes_pct"])
        assert row["l1_passes_pct"] > min_pct
    assert select_row(products["tune"], "copy_vec4")["ceiling"] == "DRAM"


@pytest.fixture(scope="module")
def cache_bound_kernels(tmp_path_factory):
    """Three kernels on 132 SMs: 128 B a cycle and SM at L1, 6016 B a cycle at L2 (ncu's own peaks of an H200)."""
    metrics = {
        "gpu__time_duration.sum": 1000, "dram__bytes_read.sum": 1e6, "dram__bytes_write.sum": 0,
        "dram__bytes.sum.peak_sustained": 2000, "dram__cycles_elapsed.avg.per_second": 2e9,
        "derived__lts__lts2xbar_bytes.sum.peak_sustained": 6016, "lts__cycles_elapsed.avg.per_second": 1.7e9,
        "derived__l1tex__lsu_writeback_bytes_mem_lgds.sum.peak_sustained": 16896,
        "l1tex__cycles_elapsed.avg.per_second": 1.5e9, "launch__sm_count": 132,
        "smsp__cycles_elapsed.avg.per_second": 1.5e9,
        "smsp__cycles_elapsed.avg": 1500, "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 0,
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed": 1000,
        "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed": 0,
        "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed": 0,
    }  # fmt: skip
    reads = {"at_l1": (1e12, 0.9 * 16896 * 1.5e9), "at_l2": (0.8 * 6016 * 1.7e9, 1e12), "at_dram": (1e12, 1e11)}
    path = tmp_path_factory.mktemp("ncu") / "cached.ncu.duckdb"
    launches = [
        Launch(
            "r", number, 1, None, name, 1, 7, 0, "9.0", (132, 1, 1), (256, 1, 1),
            {
                name: Metric(value, None)
                for name, value in {
                    **metrics, "derived__lts__lts2xbar_bytes.sum.per_second": l2,
                    "derived__l1tex__lsu_writeback_bytes_mem_lgds.sum.per_second": l1,
                }.items()
            },
        )
        for number, (name, (l2, l1)) in enumerate(reads.items())
    ]  # fmt: skip
    return store.write(launches, path)


@pytest.mark.slow
def test_the_ceiling_of_a_kernel_is_the_one_with_the_highest_use(cache_bound_kernels):
    with NcuData(cache_bound_kernels) as data:
        rows_by_kernel = {row["name"]: row for row in roofline.answer(data).dicts()}
    assert (rows_by_kernel["at_l1"]["ceiling"], rows_by_kernel["at_l2"]["ceiling"]) == ("L1", "L2")
    assert rows_by_kernel["at_l1"]["ceiling_pct"] == rows_by_kernel["at_l1"]["l1_bandwidth_pct"] == pytest.approx(90)
    assert rows_by_kernel["at_l2"]["l2_bandwidth_pct"] == pytest.approx(80)
    # 1 MB in 1 µs is a quarter of 4 TB/s; at L2 and L1 it uses less.
    assert (rows_by_kernel["at_dram"]["ceiling"], rows_by_kernel["at_dram"]["ceiling_pct"]) == (
        "DRAM",
        pytest.approx(25),
    )


@pytest.mark.parametrize("middle", ["", "op_"])
def test_bytes_of_dram_have_two_names(tmp_path, middle):
    """GB202 and the other chips of its series have no `dram__bytes_read`."""
    metrics = {
        "gpu__time_duration.sum": 1000,
        f"dram__bytes_{middle}read.sum": 3e6,
        f"dram__bytes_{middle}write.sum": 1e6,
    }
    launch = Launch(
        "r", 0, 1, None, "k", 1, 7, 0, "12.0", (1, 1, 1), (256, 1, 1),
        {name: Metric(value, None) for name, value in metrics.items()},
    )  # fmt: skip
    with NcuData(store.write([launch], tmp_path / "bytes.ncu.duckdb")) as data:
        assert data.rows("SELECT dram_bytes FROM ncu_kernels")[0]["dram_bytes"] == 4e6


def test_the_picture_has_a_line_for_each_ceiling_and_a_point_where_the_cache_is_used(cache_bound_kernels):
    with NcuData(cache_bound_kernels) as data:
        answer = roofline.answer(data)
    points = {point.name: point for point in drawing.read_points(answer)}
    assert dict(point[:2] for point in points["at_l1"].caches).keys() == {"L1", "L2"}
    assert [level for level, *_ in points["at_dram"].caches] == ["L2"]  # half a percent of L1 is not drawn
    picture = drawing.draw_svg(list(points.values()))
    assert picture.count(">L1</text>") == picture.count(">L2</text>") == 1
    assert "at_l2 at L2" in picture
    assert "/ DRAM  : L2  . L1" in drawing.plot(list(points.values()))


# Missing counters


def answer_without_columns(tmp_path, *words):
    """Answer for the same file without the columns whose names contain one of the words."""
    with DATA.open(newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    columns = [column for column, name in enumerate(lines[0]) if not any(word in name for word in words)]
    path = tmp_path / "less.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([[line[column] for column in columns] for line in lines])
    with NcuData(store.write(store.read_all([path]), tmp_path / "less.ncu.duckdb")) as data:
        answer = roofline.answer(data)
        return answer.dicts(), answer.notes


@pytest.mark.slow
def test_operations_are_unknown_if_tensor_cores_were_busy_but_not_counted(tmp_path):
    rows, notes = answer_without_columns(tmp_path, "sm__ops_path_tensor")
    for word in ("320x128", "sdpa", "64x8_64x16_1x4"):
        assert select_row(rows, word)["flop_count"] is None
    assert select_row(rows, "MulFunctor")["flop_count"] == pytest.approx(1 << 28)
    assert "import the raw page of ncu --set full" in notes[0]


@pytest.mark.slow
def test_without_any_counts_of_operations_all_are_unknown(tmp_path):
    rows, _ = answer_without_columns(tmp_path, "sm__ops_path_tensor", "smsp__sass_thread", "sm__pipe_tensor")
    assert {row["flop_count"] for row in rows} == {None}
    assert all(row["bytes_per_s"] for row in rows)


@pytest.mark.slow
def test_a_total_count_has_precedence_over_its_parts(tmp_path):
    with DATA.open(newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    column = lines[0].index("sm__ops_path_tensor_src_fp16.sum")
    part_columns = ["sm__ops_path_tensor_src_fp16_dst_fp32.sum", "sm__ops_path_tensor_src_fp16_dst_fp16.sum"]
    lines = [[*lines[0], *part_columns], [*lines[1], "", ""], *([*line, line[column], "0"] for line in lines[2:])]
    path = tmp_path / "parts.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(lines)
    with NcuData(store.write(store.read_all([path]), tmp_path / "parts.ncu.duckdb")) as data:
        assert select_row(roofline.answer(data).dicts(), "64x8_64x16_1x4")["flop_count"] == 2 * 64**3


# A baseline


def test_a_kernel_is_as_efficient_as_itself(zoo):
    baseline = roofline.find_baseline(zoo, "320x128")
    answer = roofline.answer(zoo, kernel="320x128", baseline=baseline)
    (row,) = answer.dicts()
    assert (row["efficiency_pct"], row["work_ratio"], row["bytes_ratio"]) == (100, 1, 1)
    assert len(answer.notes) == 1


def test_a_note_says_if_a_kernel_does_other_work_than_the_baseline(zoo):
    answer = roofline.answer(zoo, kernel="tf32f32", baseline=roofline.find_baseline(zoo, "320x128"))
    (row,) = answer.dicts()
    assert row["work_ratio"] == pytest.approx(2 * 4096**3 / (2 * N * N * 8320))
    assert "do different work than the baseline" in answer.notes[-1]


def test_an_unknown_baseline_is_refused(zoo):
    with pytest.raises(UsageError) as error:
        roofline.find_baseline(zoo, "nowhere")
    assert "nvjet" in error.value.hint


@pytest.fixture
def run():
    def run_command(*arguments):
        result = command_line.run(*arguments)
        return result.returncode, result.stdout, result.stderr

    return run_command


@pytest.mark.slow
def test_the_command_takes_a_baseline_from_another_file(run):
    code, out, err = run("ncu", "roofline", DATA, "--against", DATA, "-k", "tf32f32")
    assert not code
    assert "efficiency" in out
    assert "the baseline is nvjet_sm90_hsh_320x128" in err


@pytest.mark.slow
def test_the_command_draws(run, tmp_path):
    _, out, _ = run("ncu", "roofline", DATA, "--plot")
    assert "flop/byte" in out
    picture = tmp_path / "roof.svg"
    run("ncu", "roofline", DATA, "-o", picture)
    assert picture.read_text().startswith("<svg")


# In a trace


@pytest.fixture
def trace_path(tmp_path):
    """Write a trace with the tf32 product of the capture, slower than under ncu, and an unprofiled kernel."""
    with DATA.open(newline="", encoding="utf-8") as file:
        (name,) = [row["Kernel Name"] for row in csv.DictReader(file) if "tf32f32" in row["Kernel Name"]]
    trace = Trace().gpu(0, computeMajor=9, computeMinor=0)
    thread = trace.thread(pid=100)
    for kernel in (name, "sgemm_other"):
        thread.launch(kernel, grid=(66, 2, 1), block=(384, 1, 1), runs=2_000_000)
    return trace.write(tmp_path / "trace.sqlite")


@pytest.mark.slow
def test_counts_of_ncu_have_precedence_over_a_given_size(trace_path):
    with nsys_insight.open(trace_path, ncu=DATA) as session:
        rows_by_name = {row["name"][:4]: row for row in session.roofline(gemm="4096,4096,2048").to_dicts()}
    profiled_row, sized_row = rows_by_name["sm90"], rows_by_name["sgem"]
    assert (profiled_row["flop_from"], profiled_row["flop_count"]) == ("ncu", 2 * 4096**3)
    assert profiled_row["work_ratio"] == 2
    assert profiled_row["precision"] == "tf32"
    assert profiled_row["ncu_ns"] == pytest.approx(347_072)
    assert profiled_row["avg_ns"] == 2_000_000
    assert profiled_row["tflop_per_s"] == pytest.approx(2 * 4096**3 / 2_000_000 / 1e3)
    assert (sized_row["flop_from"], sized_row["work_ratio"], sized_row["ncu_ns"]) == ("size", None, None)
