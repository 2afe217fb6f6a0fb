"""The report, the join with the trace, the comparison, and the commands."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import command_line
import pytest
from sweeps import sweep

import nsys_insight
from nsys_insight.errors import ToolError, TraceError
from nsys_insight.ingest.ncu import store, tool
from nsys_insight.ingest.ncu.pages import Launch, Metric, read_file
from nsys_insight.ncu import diff, report
from nsys_insight.ncu.data import NcuData
from nsys_insight.ncu.rules import check_targets

REPOSITORY = Path(__file__).parents[1]
DATA = Path(__file__).parent / "data" / "ncu"
CHURN = REPOSITORY / "sample_traces" / "churn.sqlite"
DECODE = REPOSITORY / "sample_traces" / "decode_eager.sqlite"
ZOO_FILES = [DATA / "zoo_a.ncu.raw.csv", DATA / "zoo_a.ncu.details.csv"]
CHURN_FILES = [DATA / "churn.ncu.raw.csv", DATA / "churn.ncu.details.csv"]


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    return store.write(store.read_all(ZOO_FILES), tmp_path_factory.mktemp("zoo") / "zoo.ncu.duckdb")


@pytest.fixture(scope="module")
def churn(tmp_path_factory):
    return store.write(store.read_all(CHURN_FILES), tmp_path_factory.mktemp("churn") / "churn.ncu.duckdb")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return command_line.run


@pytest.fixture(scope="module")
def kernels(zoo):
    with NcuData(zoo) as data:
        return {row["launch"]: row for row in data.rows("FROM ncu_kernels")}


@pytest.fixture(scope="module")
def targets(zoo, kernels):
    with NcuData(zoo) as data:
        return {number: (kernels[number], results) for number, results in check_targets(data).items()}


class TestTargets:
    """A target applies to some classes of kernels, if its metric was collected."""

    @pytest.mark.slow
    def test_values_are_those_of_the_metrics(self, targets):
        for row, results in targets.values():
            value_by_target = {result.target: result.value_pct for result in results}
            if "global load efficiency" in value_by_target:
                assert value_by_target["global load efficiency"] == pytest.approx(
                    row["load_bytes_per_sector_ratio"] / 0.32
                )
            if "warp execution efficiency" in value_by_target:
                assert value_by_target["warp execution efficiency"] == pytest.approx(100 - row["divergence_pct"])

    def test_a_copy_that_fills_dram_meets_its_targets(self, targets):
        _, results = targets[3]  # scale: 87% of DRAM's peak
        is_met_by_target = {result.target: result.is_met for result in results}
        assert is_met_by_target["DRAM throughput"]
        assert is_met_by_target["global load efficiency"]
        assert "SM throughput" not in is_met_by_target

    def test_a_gather_does_not_use_what_it_loads(self, targets):
        _, results = targets[10]
        (efficiency,) = [result for result in results if result.target == "global load efficiency"]
        assert not efficiency.is_met

    def test_compute_bound_kernels_have_no_bandwidth_or_occupancy_target(self, targets):
        for row, results in targets.values():
            names = {result.target for result in results}
            if row["bound"] == "compute":
                assert not names & {"DRAM throughput", "achieved occupancy", "L2 hits"}

    def test_an_unmeasured_metric_is_not_a_target(self, tmp_path):
        launch = replace(read_file(ZOO_FILES[0])[3], metrics={"gpu__time_duration.sum": Metric(1000.0, "ns")})
        with NcuData(store.write([launch], tmp_path / "less.ncu.duckdb")) as data:
            assert check_targets(data) == {}


class TestKernels:
    """The kernels of the zoo were chosen for their known bounds."""

    @pytest.mark.parametrize(
        ("launch", "bound"),
        [
            (0, ("balanced", None)),  # fp16 GEMM, 8192 cubed: tensor pipe at 97%
            (1, ("memory", "DRAM")),  # GEMV
            (3, ("memory", "DRAM")),  # scale
            (4, ("latency", None)),  # 64 x 64 elements
            (7, ("compute", None)),  # attention
            (10, ("memory", "L2 misses")),  # random gather
            (11, ("memory", "DRAM")),  # sum
            (12, ("memory", "L2")),  # transpose
        ],
    )
    def test_the_class(self, kernels, launch, bound):
        row = kernels[launch]
        assert (row["bound"], row["memory_level"]) == bound

    @pytest.mark.slow
    def test_the_columns_are_the_metrics_and_their_ratios(self, zoo):
        launches = read_file(ZOO_FILES[0])
        with NcuData(zoo) as data:
            rows = {row["launch"]: row for row in data.rows("FROM ncu_kernels")}
        assert len(rows) == len(launches) == 16
        for number, launch in enumerate(launches):
            metric = {name: value.value for name, value in launch.metrics.items()}
            row = rows[number]
            assert row["duration_ns"] == metric["gpu__time_duration.sum"]
            assert row["dram_pct"] == metric["gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"]
            assert row["blocks_count"] == metric["launch__grid_size"]
            assert row["threads_per_block"] == metric["launch__block_size"]
            requests = metric["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"]
            sectors = metric["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"]
            assert row["load_sectors_per_request_ratio"] == (sectors / requests if requests else None)
            limits = {
                word: metric[f"launch__occupancy_limit_{name}"]
                for word, name in (
                    ("warps", "warps"),
                    ("registers", "registers"),
                    ("shared memory", "shared_mem"),
                    ("blocks", "blocks"),
                )
            }
            assert row["blocks_per_sm"] == min(limits.values())
            expected = [word for word, limit in limits.items() if limit == row["blocks_per_sm"]]
            assert row["occupancy_limit"] == ("warps" if "warps" in expected else " and ".join(expected))

    @pytest.mark.slow
    def test_stalls_are_shares_of_all_reasons(self, zoo):
        prefix, suffix = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"
        with NcuData(zoo) as data:
            rows = data.rows("FROM ncu_stalls")
        for number, launch in enumerate(read_file(ZOO_FILES[0])):
            cycles = {
                name.removeprefix(prefix).removesuffix(suffix): value.value
                for name, value in launch.metrics.items()
                if name.startswith(prefix) and name.endswith(suffix) and "not_issued" not in name
            }
            shares = {row["reason"]: row["stall_pct"] for row in rows if row["launch"] == number}
            assert shares == pytest.approx(
                {reason: 100 * value / sum(cycles.values()) for reason, value in cycles.items()}
            )
            assert sum(shares.values()) == pytest.approx(100)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("name", "implementation", "facts"),
        [
            ("scale(float *, float, int)", "native", {}),
            ("triton_poi_fused_add_mul_0", "inductor", {}),
            ("matmul_kernel_0d1d2d3d4d5d6d7c8d9c10d11c", "triton", {}),
            ("kernel_cutlass_add_kernel_tensorptrf32gmem_0", "cute", {}),
            ("nvjet_sm90_tst_64x8_64x16_2x4_h_bz_TNT", "library", {"name_arch": 90, "name_tile": "64x8"}),
            ("void at::vectorized_elementwise_kernel<4, x>(int)", "pytorch", {}),
            ("sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x64x32_stage4_warpsize2x2x1_tensor16x8x16_kernel",
             "cutlass",
             {"name_arch": 80, "name_tile": "128x64x32", "name_stages": 4, "name_math": "tensorop"}),
            ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_32x6_tn_align8>(T1::Params)",
             "cutlass",
             {"name_arch": 80, "name_tile": "64x64", "name_stages": 6, "name_alignment": 8, "name_math": "tensorop"}),
            ("void cutlass::Kernel<cutlass_80_simt_sgemm_128x128_8x4_nn_align1>(T1::Params)", "cutlass",
             {"name_stages": 4, "name_alignment": 1, "name_math": "simt"}),
            ("cutlass3x_sm90_tensorop_s64x128x16gemm_f16_128x128x64_2x1x1_0_tnn_align8_warpspecialized_cooperative_epi",
             "cutlass",
             {"name_arch": 90, "name_alignment": 8, "name_schedule": "cooperative", "name_math": "tensorop"}),
        ],
    )  # fmt: skip
    def test_the_implementation_and_the_facts_in_a_kernel_name(self, tmp_path, name, implementation, facts):
        launch = Launch(
            "r", 0, 1, "app", name, 1, 7, 0, "9.0", (1, 1, 1), (32, 1, 1), {"gpu__time_duration.sum": Metric(1, "ns")}
        )
        with NcuData(store.write([launch], tmp_path / "a.ncu.duckdb")) as data:
            (row,) = data.rows("FROM ncu_kernels")
        assert row["implementation"] == implementation
        assert {key: row[key] for key in facts} == facts

    def test_the_implementation_that_the_user_gives_has_precedence(self, tmp_path):
        with NcuData(store.write(read_file(CHURN_FILES[0]), tmp_path / "a.ncu.duckdb", "cute")) as data:
            assert {row["implementation"] for row in data.rows("FROM ncu_kernels")} == {"cute"}


class TestReport:
    @pytest.mark.slow
    def test_it_groups_launches_and_shares_sum_to_all(self, churn):
        with NcuData(churn) as data:
            kernel_report = report.build(data, "churn")
        assert [(kernel.row["short_name"], len(kernel.launches)) for kernel in kernel_report.kernels] == [
            ("rowsum", 1), ("add", 1), ("relu", 1), ("scale", 1),
        ]  # fmt: skip
        assert sum(kernel.share_pct for kernel in kernel_report.kernels) == pytest.approx(100)

    @pytest.mark.slow
    def test_findings_are_sorted_and_priorities_by_time(self, zoo):
        with NcuData(zoo) as data:
            kernel_report = report.build(data, "zoo")
        order = ["critical", "warning", "info"]
        for kernel in kernel_report.kernels:
            severities = [order.index(finding.severity) for finding in kernel.findings]
            assert severities == sorted(severities)
        (transpose,) = (priority for priority in kernel_report.priorities if priority.kernel.row["launch"] == 12)
        assert transpose.saving_pct == 79.21
        assert transpose.saving_ns == pytest.approx(0.7921 * 119_616)

    @pytest.mark.slow
    def test_the_eight_diagnostics_have_figures(self, zoo):
        with NcuData(zoo) as data:
            kernel_report = report.build(data, "zoo")
        (gemm,) = (kernel for kernel in kernel_report.kernels if kernel.row["launch"] == 0)
        assert gemm.diagnostics["roofline"].startswith("compute side, near the roof: SM 93.4%")
        assert "tensor 97.0%" in gemm.diagnostics["pipes"]
        assert "limited by registers and shared memory" in gemm.diagnostics["occupancy"]
        assert "gmma 33.3%" in gemm.diagnostics["warp stalls"]
        assert set(gemm.conclusion) == {
            "kernel", "implementation", "arch", "class", "duration", "roofline", "occupancy", "registers",
            "shared memory",
        }  # fmt: skip

    @pytest.mark.parametrize("fmt", ["table", "json", *sweep(["markdown"])])
    def test_every_format(self, run, fmt, zoo):
        result = run("ncu", "report", *(ZOO_FILES if fmt == "json" else [zoo]), "--format", fmt, "-n", 0)
        assert result.returncode == 0, result.stderr
        if fmt == "json":
            object_ = json.loads(result.stdout)
            assert len(object_["kernels"]) == 16
            assert object_["kernels"][0]["findings"][0]["evidence"]["sm_pct"] == pytest.approx(93.370948)
        else:
            assert "Global loads are not coalesced" in result.stdout
            assert "32" in result.stdout
            assert "\x1b" not in result.stdout
        if fmt == "table":
            assert max(map(len, result.stdout.splitlines())) <= 100

    @pytest.mark.slow
    def test_one_kernel_of_many(self, run):
        result = run("ncu", "report", ZOO_FILES[0], "--kernel", "SoftMax", "--format", "json")
        assert [kernel["family"] for kernel in json.loads(result.stdout)["kernels"]] == ["softmax"]
        failed = run("ncu", "report", ZOO_FILES[0], "--kernel", "nothing")
        assert failed.returncode == 2
        assert "hint: there are:" in failed.stderr


class TestWithTheTrace:
    def test_headroom_is_the_traces_time_and_ncus_share(self, churn):
        """Calculate the use of the nearer ceiling by hand. No kernel gets shorter than the shortest one."""
        with nsys_insight.open(CHURN, ncu=churn) as trace:
            rows = {row["name"].partition("(")[0]: row for row in trace.run("headroom", tokens=20).to_dicts()}
            kernels = trace.sql("SELECT short_name, duration_ns FROM kernels").rows()
        assert set(rows) == {"scale", "add", "relu", "rowsum"}
        shortest = min(duration for _, duration in kernels)
        total_ns = sum(duration for _, duration in kernels)
        for launch in read_file(CHURN_FILES[0])[:4]:
            name = launch.kernel.partition("(")[0]
            row, durations = rows[name], [duration for kernel, duration in kernels if kernel == name]
            sm = launch.metrics["sm__throughput.avg.pct_of_peak_sustained_elapsed"].value / 80
            dram = launch.metrics["gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"].value / 85
            assert (row["calls"], row["total_ns"]) == (len(durations), sum(durations))
            assert row["kernel_time_pct"] == pytest.approx(100 * sum(durations) / total_ns)
            assert row["ceiling"] == ("DRAM" if dram > sm else "SM")
            assert row["ceiling_used_pct"] == pytest.approx(100 * max(sm, dram))
            remaining_ns = len(durations) * max(sum(durations) / len(durations) * max(sm, dram), shortest)
            assert row["recoverable_ns"] == pytest.approx(max(sum(durations) - remaining_ns, 0), abs=1)
            assert row["recoverable_per_token_ns"] == row["recoverable_ns"] / 20
            assert row["match"] == "name, grid, block, order"
        assert rows["rowsum"]["ncu_rule"]
        assert rows["rowsum"]["ncu_saving_ns"] == pytest.approx(
            rows["rowsum"]["total_ns"] * rows["rowsum"]["ncu_saving_pct"] / 100, abs=1
        )

    def test_names_match_despite_the_spellings_of_nsys_and_ncu(self, tmp_path):
        decode = store.write(read_file(DATA / "decode_eager.ncu.raw.csv"), tmp_path / "d.ncu.duckdb")
        with nsys_insight.open(DECODE, ncu=decode) as trace:
            launches_by_match = trace.sql(
                "SELECT match, count(DISTINCT launch) AS launches FROM ncu_matches GROUP BY ALL"
            )
            matched = trace.sql(
                "SELECT count(DISTINCT launch) FROM ncu_matches WHERE match LIKE 'name, grid, block%'"
            ).item()
        assert sum(launches_by_match["launches"]) >= 52
        assert matched >= 45

    def test_libraries_are_recognized_by_names_without_namespaces(self, tmp_path):
        implementations = {
            # As ncu prints them: no namespace is left.
            "void vectorized_elementwise_kernel<4, FillFunctor<float>, array<char *, 1>>(int, T2, T3)": "pytorch",
            "void elementwise_kernel<128, 4, void gpu_kernel_impl_nocast<BinaryFunctor<float>>>(int, T3)": "pytorch",
            "void reduce_kernel<512, 1, ReduceOp<float, MeanOps<float>, unsigned int, float, 4>>(T3)": "pytorch",
            "void cunn_SoftMaxForward<8, float, float, float, SoftMaxForwardEpilogue>(T4 *)": "pytorch",
            "void RowwiseMomentsCUDAKernel<float>(long, T1, const T1 *)": "pytorch",
            "void DeviceReduceKernel<DeviceReducePolicy<double, unsigned int>::Policy600, double *>(T2)": "library",
            "void DeviceRadixSortOnesweepKernel<DeviceRadixSortPolicy<long>::Policy900, 0, long>(T7 *)": "library",
            "void gemv2T_kernel_val<int, int, float>(T13)": "library",
            "void reduce_kernel<4>(float *)": "native",
            "rowsum(const float *, float *, int)": "native",
        }
        launch = vars(read_file(CHURN_FILES[0])[0])
        launches = [Launch(**{**launch, "kernel": name, "ncu_id": index}) for index, name in enumerate(implementations)]
        with nsys_insight.open(CHURN, ncu=store.write(launches, tmp_path / "o.ncu.duckdb")) as trace:
            rows = trace.sql("SELECT implementation FROM ncu_launches ORDER BY ncu_id").rows()
        assert [implementation for (implementation,) in rows] == list(implementations.values())

    def test_another_grid_gives_no_estimate(self, tmp_path):
        rowsum = next(candidate for candidate in read_file(CHURN_FILES[0]) if candidate.kernel.startswith("rowsum"))
        other = Launch(**{**vars(rowsum), "grid": (7, 1, 1)})
        with nsys_insight.open(CHURN, ncu=store.write([other], tmp_path / "o.ncu.duckdb")) as trace:
            (row,) = trace.run("headroom").to_dicts()
        assert (row["match"], row["recoverable_ns"], row["ncu_saving_ns"], row["ceiling"]) == ("name", None, None, None)

    def test_an_order_that_differs_from_the_trace_is_not_matched(self, tmp_path):
        launches = read_file(CHURN_FILES[0])
        swapped = [Launch(**{**vars(launch), "ncu_id": -launch.ncu_id}) for launch in launches]
        with nsys_insight.open(CHURN, ncu=store.write(swapped, tmp_path / "s.ncu.duckdb")) as trace:
            assert set(trace.sql("SELECT match FROM ncu_matches")["match"]) == {"name, grid, block"}

    def test_without_ncu_data_the_relations_are_there_and_empty(self):
        with nsys_insight.open(CHURN) as trace:
            for view in ("ncu_launches", "ncu_metrics", "ncu_rules", "ncu_stalls", "ncu_kernels", "ncu_matches"):
                assert trace.sql(f"FROM {view}").height == 0, view
            assert "ncu plan" in trace.answer("headroom").empty

    @pytest.mark.slow
    def test_a_file_next_to_the_trace_is_found(self, tmp_path, churn):
        (tmp_path / "churn.sqlite").write_bytes(CHURN.read_bytes())
        (tmp_path / "churn.ncu.duckdb").write_bytes(churn.read_bytes())
        with nsys_insight.open(tmp_path / "churn.sqlite") as trace:
            assert trace.sql("SELECT count(*) FROM ncu_launches").item() == 4
            assert trace.scope(device=0).sql("SELECT count(*) FROM ncu_launches").item() == 4

    def test_a_file_that_was_found_automatically_is_noted_once_when_it_is_read(self, tmp_path, churn):
        (tmp_path / "churn.sqlite").write_bytes(CHURN.read_bytes())
        (tmp_path / "churn.ncu.duckdb").write_bytes(churn.read_bytes())
        notes = []
        with nsys_insight.open(tmp_path / "churn.sqlite", note=notes.append) as trace:
            notes.clear()  # of opening
            trace.sql("SELECT count(*) AS ncu_launches FROM kernels WHERE name <> 'ncu_launches'")
            assert not notes
            trace.sql("FROM ncu_launches")
            trace.answer("headroom")
        assert notes == [f"ncu data is from {tmp_path / 'churn.ncu.duckdb'}"]

    def test_a_csv_page_works_too(self):
        with nsys_insight.open(CHURN, ncu=CHURN_FILES[0]) as trace:
            sizes = trace.sql("SELECT value FROM ncu_metrics WHERE metric = 'launch__grid_size' ORDER BY launch")
            assert sizes["value"].to_list() == [256, 256, 1, 256]


def scale_launches(launches, factor, **metrics):
    names = {
        "sm": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "dram": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    }
    changed_metrics = {names[name]: Metric(value, "%") for name, value in metrics.items()}
    time = "gpu__time_duration.sum"
    return [
        Launch(
            **{
                **vars(launch),
                "metrics": {
                    **launch.metrics,
                    time: Metric(launch.metrics[time].value * factor, "ns"),
                    **changed_metrics,
                },
            }
        )
        for launch in launches
    ]


@pytest.fixture(scope="module")
def baseline_launch(tmp_path_factory):
    """Give one launch, and its data."""
    before = read_file(CHURN_FILES[0])[2:3]
    with NcuData(store.write(before, tmp_path_factory.mktemp("before") / "a.ncu.duckdb")) as old:
        yield before, old


class TestDiff:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("factor", "metrics", "verdict", "decision"),
        [
            (0.5, {}, "improved", "continue"),
            (0.5, {"dram": 90.0}, "improved", "stop"),
            (1.2, {}, "regressed", "roll back"),
            (1.01, {}, "plateau", "stop"),
            (0.99, {"sm": 81.0}, "at the ceiling", "stop"),
        ],
    )
    def test_verdicts(self, tmp_path, baseline_launch, *, factor, metrics, verdict, decision):
        before, old = baseline_launch
        with NcuData(store.write(scale_launches(before, factor, **metrics), tmp_path / "b.ncu.duckdb")) as new:
            comparisons = diff.compare(old, new)
        assert [comparison.verdict for comparison in comparisons] == [verdict]
        assert diff.decide(comparisons) == decision
        assert comparisons[0].delta_pct == pytest.approx(100 * (factor - 1))

    @pytest.mark.slow
    def test_less_than_the_spread_is_noise(self, tmp_path):
        launch = read_file(CHURN_FILES[0])[2]
        before = [
            Launch(**{**vars(copy), "ncu_id": number}) for number, copy in enumerate(scale_launches([launch] * 2, 1))
        ]
        before[1].metrics["gpu__time_duration.sum"] = Metric(
            before[0].metrics["gpu__time_duration.sum"].value * 1.4, "ns"
        )
        after = scale_launches(before, 0.9)
        with (
            NcuData(store.write(before, tmp_path / "a.ncu.duckdb")) as old,
            NcuData(store.write(after, tmp_path / "b.ncu.duckdb")) as new,
        ):
            assert [pair.verdict for pair in diff.compare(old, new)] == ["plateau"]

    @pytest.mark.slow
    def test_findings_that_came_and_went(self, tmp_path):
        before = read_file(ZOO_FILES[0])[12:13]
        sectors = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
        after = [
            Launch(**{**vars(before[0]), "metrics": {**before[0].metrics, sectors: Metric(524288 * 4.0, "sector")}})
        ]
        with (
            NcuData(store.write(before, tmp_path / "a.ncu.duckdb")) as old,
            NcuData(store.write(after, tmp_path / "b.ncu.duckdb")) as new,
        ):
            (pair,) = diff.compare(old, new)
            (back,) = diff.compare(new, old)
        assert (pair.new_findings, pair.gone_findings) == ((), ("uncoalesced-loads",))
        assert (back.new_findings, back.gone_findings) == (("uncoalesced-loads",), ())

    @pytest.mark.slow
    def test_findings_of_uncollected_metrics_are_neither_new_nor_gone(self, tmp_path):
        before = read_file(ZOO_FILES[0])[12:13]
        metrics = {name: metric for name, metric in before[0].metrics.items() if "global_op_ld" not in name}
        with (
            NcuData(store.write(before, tmp_path / "a.ncu.duckdb")) as old,
            NcuData(store.write([Launch(**{**vars(before[0]), "metrics": metrics})], tmp_path / "b.ncu.duckdb")) as new,
        ):
            (pair,) = diff.compare(old, new)
        assert pair.gone_findings == ()


class TestCommands:
    @pytest.mark.slow
    def test_import_then_ask(self, run, tmp_path):
        result = run("ncu", "import", *CHURN_FILES)
        assert (result.returncode, result.stdout) == (0, "churn.ncu.duckdb\n")
        assert "4 launches" in result.stderr
        answer = run(
            "sql", CHURN, "SELECT kernel, rule FROM ncu_rules WHERE speedup_pct > 50 ORDER BY ALL", "--format", "csv"
        )
        assert answer.stdout.startswith('kernel,rule\n"rowsum(const float *, float *, int)",')
        assert "name, grid, block, order" in run("headroom", CHURN, "--format", "csv").stdout
        assert run("ncu", "report", "churn.ncu.duckdb").returncode == 0
        assert [path.name for path in tmp_path.iterdir()] == ["churn.ncu.duckdb"]

    @pytest.mark.slow
    def test_plan_in_a_machine_format(self, run):
        result = run("ncu", "plan", CHURN, "--format", "json", "--", "./other", "--flag")
        assert result.returncode == 0
        assert json.loads(result.stdout)["params"]["command"][-2:] == ["./other", "--flag"]
        only = run("ncu", "plan", CHURN, "--command-only")
        assert only.stdout.startswith("ncu --target-processes all")
        assert only.stdout.count("\n") == 1
        assert run("ncu", "plan", CHURN, "--format", "csv").stdout.startswith("ncu_id,planned,name,grid,block,")

    @pytest.mark.parametrize(
        ("words", "code"),
        [
            (("ncu", "report", "absent.csv"), 3),
            (("ncu", "import", CHURN), 3),
            (("ncu", "report", "{empty}"), 3),
            (("ncu", "plan", "absent.sqlite"), 3),
            (("ncu", "diff", "a.csv"), 2),
            (("ncu", "report", CHURN_FILES[0], "--type", "fortran"), 2),
            (("ncu", "report", CHURN_FILES[0], "--format", "csv"), 2),
            (("ncu", "import", CHURN_FILES[0], "-o", "no/such/folder/x.duckdb"), 2),
            (("top", CHURN, "--ncu", "absent.csv"), 3),
            (("ncu", "diff", CHURN_FILES[0], CHURN_FILES[0], "--metric", "speed"), 2),
        ],
        ids=str,
    )
    def test_errors_have_a_sentence_a_hint_and_a_code(self, run, tmp_path, words, code):
        (tmp_path / "empty.csv").write_text("")
        result = run(*(tmp_path / "empty.csv" if word == "{empty}" else word for word in words))
        assert result.returncode == code, result.stderr
        assert result.stdout == ""
        assert result.stderr.startswith("error: ")
        assert "\nhint: " in result.stderr

    def test_ncu_alone_is_an_error_with_its_help(self, run):
        result = run("ncu")
        assert result.returncode == 2
        assert "plan" in result.stdout
        assert "needs a subcommand" in result.stderr


def fake_ncu(folder, script):
    path = folder / "ncu"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


# The text that a report begins with, and the size of an empty header.
EMPTY_REPORT = b"NVR\0" + bytes(4)


class TestTool:
    def test_a_report_is_read_through_the_users_ncu(self, tmp_path, monkeypatch):
        ncu = fake_ncu(tmp_path, f'case "$*" in *raw*) cat {CHURN_FILES[0]};; *) cat {CHURN_FILES[1]};; esac')
        monkeypatch.setenv("NSYS_INSIGHT_NCU", str(ncu))
        (tmp_path / "churn.ncu-rep").write_bytes(EMPTY_REPORT)
        launches = store.read_all([tmp_path / "churn.ncu-rep"])
        assert [launch.report for launch in launches] == ["churn"] * 4
        assert sum(bool(launch.rules) for launch in launches) == 1

    def test_a_missing_ncu_is_an_error(self, tmp_path, monkeypatch):
        monkeypatch.setenv("NSYS_INSIGHT_NCU", str(tmp_path / "absent"))
        (tmp_path / "a.ncu-rep").write_bytes(EMPTY_REPORT)
        with pytest.raises(ToolError, match="which is not an ncu"):
            store.read_all([tmp_path / "a.ncu-rep"])

    def test_a_report_that_ncu_cannot_read(self, tmp_path, monkeypatch):
        monkeypatch.setenv("NSYS_INSIGHT_NCU", str(fake_ncu(tmp_path, "echo '==ERROR== File is newer'; exit 1")))
        (tmp_path / "a.ncu-rep").write_bytes(EMPTY_REPORT)
        with pytest.raises(ToolError, match="File is newer"):
            store.read_all([tmp_path / "a.ncu-rep"])

    def test_missing_permission_has_two_remedies(self, tmp_path, capsys):
        ncu = fake_ncu(tmp_path, "echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission'; exit 1")
        with pytest.raises(ToolError, match="performance counters") as raised:
            tool.run([str(ncu), "./app"])
        assert "sudo" in raised.value.hint
        assert "NVreg_RestrictProfilingToAdminUsers=0" in raised.value.hint
        assert "ERR_NVGPUCTRPERM" in capsys.readouterr().err

    def test_no_kernel_profiled_is_an_error(self, tmp_path):
        with pytest.raises(ToolError, match="profiled no kernel"):
            tool.run([str(fake_ncu(tmp_path, "echo '==WARNING== No kernels were profiled.'")), "./app"])

    def test_a_damaged_store(self, tmp_path):
        path = tmp_path / "x.ncu.duckdb"
        path.write_bytes(b"12345678DUCK" + b"\0" * 100)
        with pytest.raises(TraceError, match="cannot be read"):
            NcuData(path)
