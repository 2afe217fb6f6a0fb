"""The roofline from ncu's counters: against sizes that are known, ncu's own shares of its peaks, and in a trace."""

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

# What ncu --set full counted of 14 operations of PyTorch on an H200, cut to the columns that are read here.
DATA = Path(__file__).parent / "data" / "ncu" / "zoo_a.operations.csv"
N = 8192


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    path = store.write(store.read_all([DATA]), tmp_path_factory.mktemp("ncu") / "zoo.ncu.duckdb")
    with NcuData(path) as measured:
        yield measured


@pytest.fixture(scope="module")
def rows(zoo):
    return roofline.answer(zoo).dicts()


@pytest.fixture(scope="module")
def printed():
    """ncu's own columns, by kernel."""
    with DATA.open(newline="", encoding="utf-8") as file:
        return {row["Kernel Name"]: row for row in csv.DictReader(file) if row["ID"]}


def of(rows, word):
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
        # A tile of 320 does not divide 8192: 26 of them compute 8320 rows, 1.6 % more.
        ("320x128", "fp16", 2 * N * N * 8320),
    ],
)
def test_operations_are_those_of_the_size(rows, word, precision, flop):
    row = of(rows, word)
    assert row["precision"] == precision
    assert row["flop_count"] == pytest.approx(flop, rel=1e-6)


def test_operations_in_other_precisions_stand_beside(rows):
    # The softmax of attention is fp32; a product without epilogue has nothing else to speak of.
    assert 0 < of(rows, "sdpa")["other_flop_count"] < 0.01 * of(rows, "sdpa")["flop_count"]
    assert of(rows, "320x128")["other_flop_count"] == 0


def test_multiply_adds_on_zeros_that_fill_registers_are_no_operations(rows):
    """A gather has no arithmetic, but 117 million HFMA2: what it does cannot be determined from them."""
    for word in ("index_elementwise", "direct_copy"):
        row = of(rows, word)
        assert (row["precision"], row["flop_count"], row["roof"]) == (None, None, None)
        assert row["bandwidth_pct"] > 0


def test_no_operations_are_none(rows):
    row = of(rows, "clamp")
    assert (row["flop_count"], row["precision"], row["roof"]) == (0, None, "memory")


def test_shares_of_the_peak_are_ncus_own(rows, printed):
    # ncu's peak of these two counters is that of sparse matrices, which is twice the dense one.
    for word, column in (("320x128", "fp16"), ("tf32f32", "tf32_dst_fp32")):
        row = of(rows, word)
        own = float(printed[row["name"]][f"sm__ops_path_tensor_src_{column}.sum.pct_of_peak_sustained_elapsed"])
        assert row["compute_pct"] == pytest.approx(2 * own, rel=0.01)
    for row in rows:
        own = float(printed[row["name"]]["gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"])
        if row["duration_ns"] > 20_000:
            assert row["bandwidth_pct"] == pytest.approx(own, rel=0.1)


# Bytes


def test_an_element_wise_kernel_moves_each_element_twice_at_every_level(rows):
    row = of(rows, "MulFunctor")
    for column in ("bytes", "l2_bytes", "l1_bytes"):
        assert row[column] == pytest.approx(2 * 4 * (1 << 28), rel=0.02)


def test_caches_serve_a_matrix_product_what_dram_does_not(rows):
    row = of(rows, "320x128")
    assert row["l2_bytes"] > 5 * row["bytes"]
    assert row["l2_intensity_ratio"] < row["intensity_ratio"]


def test_the_roof_is_the_lower_one(rows):
    assert {of(rows, word)["roof"] for word in ("320x128", "tf32f32", "sdpa")} == {"compute"}
    assert {of(rows, word)["roof"] for word in ("MulFunctor", "splitK_NNT", "reduce_kernel<512")} == {"memory"}
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
    row = of(products[file], kernel)
    assert row["precision"] == precision
    assert row["flop_count"] == pytest.approx(flop, rel=0.01)


def test_captures_of_several_sizes_make_one_table(products):
    found = {row["grid"]: row["flop_count"] for row in products["sweep"]}
    assert found == {f"{n // 128}x{n // 128}x1": pytest.approx(2 * n**3, rel=0.01) for n in (512, 1024, 2048, 4096)}


@pytest.fixture(scope="module")
def products(tmp_path_factory):
    folder, found = tmp_path_factory.mktemp("products"), {}
    for name in ("tune", "sweep", "library"):
        path = store.write(store.read_all([DATA.parent / f"{name}.raw.csv"]), folder / f"{name}.ncu.duckdb")
        with NcuData(path) as measured:
            found[name] = roofline.answer(measured).dicts()
    return found


# Ceilings of the caches


def test_without_the_counters_of_the_caches_their_ceilings_are_unknown(rows):
    """The columns of this file are few: the ceiling is the higher of the two that are known."""
    for row in rows:
        assert row["l2_bandwidth_pct"] is None
        assert row["ceiling_pct"] == max(filter(None, (row["compute_pct"], row["bandwidth_pct"])))


def test_shared_memory_and_scattered_access_are_seen_at_the_ceiling_of_l1(products):
    """By construction: rows in 32 sectors, tiles in shared memory; and a copy that is coalesced."""
    for kernel, least in (("gemm_0", 95), ("gemm_2", 90)):
        row = of(products["tune"], kernel)
        assert (row["ceiling"], row["ceiling_pct"]) == ("L1", row["l1_passes_pct"])
        assert row["l1_passes_pct"] > least
    assert of(products["tune"], "copy_vec4")["ceiling"] == "DRAM"


@pytest.fixture(scope="module")
def cached(tmp_path_factory):
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
def test_a_kernel_is_nearest_to_the_ceiling_of_which_it_uses_most(cached):
    with NcuData(cached) as measured:
        found = {row["name"]: row for row in roofline.answer(measured).dicts()}
    assert (found["at_l1"]["ceiling"], found["at_l2"]["ceiling"]) == ("L1", "L2")
    assert found["at_l1"]["ceiling_pct"] == found["at_l1"]["l1_bandwidth_pct"] == pytest.approx(90)
    assert found["at_l2"]["l2_bandwidth_pct"] == pytest.approx(80)
    # 1 MB in 1 µs is a quarter of 4 TB/s; at L2 and L1 it uses less.
    assert (found["at_dram"]["ceiling"], found["at_dram"]["ceiling_pct"]) == ("DRAM", pytest.approx(25))


def test_the_picture_has_a_line_for_each_ceiling_and_a_point_where_the_cache_is_used(cached):
    with NcuData(cached) as measured:
        made = roofline.answer(measured)
    points = {point.name: point for point in drawing.points(made)}
    assert dict(point[:2] for point in points["at_l1"].caches).keys() == {"L1", "L2"}
    assert [level for level, *_ in points["at_dram"].caches] == ["L2"]  # half a percent of L1 has no place in it
    picture = drawing.svg(list(points.values()))
    assert picture.count(">L1</text>") == picture.count(">L2</text>") == 1
    assert "at_l2 at L2" in picture
    assert "/ DRAM  : L2  . L1" in drawing.plot(list(points.values()))


# What was not counted


def without(tmp_path, *words):
    """The same file without the columns whose names contain a word."""
    with DATA.open(newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    kept = [at for at, name in enumerate(lines[0]) if not any(word in name for word in words)]
    path = tmp_path / "less.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([[line[at] for at in kept] for line in lines])
    with NcuData(store.write(store.read_all([path]), tmp_path / "less.ncu.duckdb")) as measured:
        made = roofline.answer(measured)
        return made.dicts(), made.notes


@pytest.mark.slow
def test_where_tensor_cores_were_busy_and_not_counted_operations_are_unknown(tmp_path):
    rows, notes = without(tmp_path, "sm__ops_path_tensor")
    for word in ("320x128", "sdpa", "64x8_64x16_1x4"):
        assert of(rows, word)["flop_count"] is None
    assert of(rows, "MulFunctor")["flop_count"] == pytest.approx(1 << 28)
    assert "import the raw page of ncu --set full" in notes[0]


@pytest.mark.slow
def test_without_any_counts_of_operations_all_are_unknown(tmp_path):
    rows, _ = without(tmp_path, "sm__ops_path_tensor", "smsp__sass_thread", "sm__pipe_tensor")
    assert {row["flop_count"] for row in rows} == {None}
    assert all(row["bytes_per_s"] for row in rows)


@pytest.mark.slow
def test_of_a_count_and_its_parts_the_whole_is_taken(tmp_path):
    with DATA.open(newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    at = lines[0].index("sm__ops_path_tensor_src_fp16.sum")
    parts = ["sm__ops_path_tensor_src_fp16_dst_fp32.sum", "sm__ops_path_tensor_src_fp16_dst_fp16.sum"]
    lines = [[*lines[0], *parts], [*lines[1], "", ""], *([*line, line[at], "0"] for line in lines[2:])]
    path = tmp_path / "parts.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(lines)
    with NcuData(store.write(store.read_all([path]), tmp_path / "parts.ncu.duckdb")) as measured:
        assert of(roofline.answer(measured).dicts(), "64x8_64x16_1x4")["flop_count"] == 2 * 64**3


# A baseline


def test_a_kernel_is_as_efficient_as_itself(zoo):
    baseline = roofline.baseline_of(zoo, "320x128")
    made = roofline.answer(zoo, kernel="320x128", baseline=baseline)
    (row,) = made.dicts()
    assert (row["efficiency_pct"], row["work_ratio"], row["bytes_ratio"]) == (100, 1, 1)
    assert len(made.notes) == 1


def test_who_does_other_work_than_the_baseline_is_said_to(zoo):
    made = roofline.answer(zoo, kernel="tf32f32", baseline=roofline.baseline_of(zoo, "320x128"))
    (row,) = made.dicts()
    assert row["work_ratio"] == pytest.approx(2 * 4096**3 / (2 * N * N * 8320))
    assert "do different work than the baseline" in made.notes[-1]


def test_a_baseline_that_is_not_there_is_refused(zoo):
    with pytest.raises(UsageError) as error:
        roofline.baseline_of(zoo, "nowhere")
    assert "nvjet" in error.value.hint


@pytest.fixture
def run():
    def ask(*arguments):
        done = command_line.run(*arguments)
        return done.returncode, done.stdout, done.stderr

    return ask


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
def traced(tmp_path):
    """A trace with the tf32 product of the capture, slower than under ncu, and a kernel that ncu did not profile."""
    with DATA.open(newline="", encoding="utf-8") as file:
        (name,) = [row["Kernel Name"] for row in csv.DictReader(file) if "tf32f32" in row["Kernel Name"]]
    trace = Trace().gpu(0, computeMajor=9, computeMinor=0)
    thread = trace.thread(pid=100)
    for kernel in (name, "sgemm_other"):
        thread.launch(kernel, grid=(66, 2, 1), block=(384, 1, 1), runs=2_000_000)
    return trace.write(tmp_path / "trace.sqlite")


@pytest.mark.slow
def test_what_ncu_counted_goes_before_a_size_by_hand(traced):
    with nsys_insight.open(traced, ncu=DATA) as opened:
        found = {row["name"][:4]: row for row in opened.roofline(gemm="4096,4096,2048").to_dicts()}
    counted, given = found["sm90"], found["sgem"]
    assert (counted["flop_from"], counted["flop_count"]) == ("ncu", 2 * 4096**3)
    assert counted["work_ratio"] == 2
    assert counted["precision"] == "tf32"
    assert counted["ncu_ns"] == pytest.approx(347_072)
    assert counted["avg_ns"] == 2_000_000
    assert counted["tflop_per_s"] == pytest.approx(2 * 4096**3 / 2_000_000 / 1e3)
    assert (given["flop_from"], given["work_ratio"], given["ncu_ns"]) == ("size", None, None)
