"""Programs with one planted ailment each, and the same programs is_cured: where a rule fires and where it is silent."""

from __future__ import annotations

from functools import partial

import planted
from planted import Loop
from synthetic import Trace

MS = 1_000_000
NATIVE = "void at::native::vectorized_elementwise_kernel<4, at::native::{}<float>>(int)"
LARGE = {"grid": (4096, 1, 1), "block": (256, 1, 1)}


def run_steps(body, *, steps=10, sync=True):
    """Make a loop on an H200 whose steps run `body(loop, number)`, and end with a wait."""
    loop = Loop(Trace().gpu())
    for number in range(steps):
        loop.step()
        body(loop, number)
        if sync:
            loop.sync()
    return planted.planted(loop.trace, loop)


def gemms(name, *, other_names=()):
    def body(loop, _):
        for _ in range(4):
            loop.launch(name, MS, **LARGE)
            for other in other_names:
                loop.launch(other, 5 * MS, **LARGE)

    return run_steps(body)


FP32 = "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize256x128x8_stage3_warpsize4x2x1_ffma_aligna4_alignc4"
TF32 = "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize256x128x16_stage3_tensor16x8x8_aligna4_alignc4"
BF16 = "nvjet_sm90_tst_128x256_64x4_1x2_h_bz_coopA_NNT"
FP64 = "void cutlass::Kernel2<cutlass_80_tensorop_d884gemm_64x64_16x4_nn_align1>(T1::Params)"


def attention(*, is_fused=False, layers=4):
    def body(loop, _):
        loop.launch("void vectorized_gather_kernel<16, long>(char *)", 20_000, **LARGE)
        for _ in range(layers):
            loop.launch("void vectorized_layer_norm_kernel<float, float>(int)", 20_000, **LARGE)
            loop.launch(BF16, 60_000, **LARGE)
            if is_fused:
                loop.launch("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits>(Params)", 120_000, **LARGE)
            else:
                loop.launch("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNN", 200_000, **LARGE)
                loop.launch(NATIVE.format("MulFunctor"), 300_000, **LARGE)
                loop.launch("void softmax_warp_forward<float, float, float, 11, false, false>(int)", 700_000, **LARGE)
                loop.launch("nvjet_sm90_tst_64x512_64x2_1x2_h_bz_coopB_NNT", 200_000, **LARGE)
            loop.launch("nvjet_sm90_tst_128x64_64x4_1x2_h_bz_coopA_TNT", 50_000, **LARGE)
        loop.launch("nvjet_sm90_tst_192x64_64x4_1x2_h_bz_coopA_TNT", 90_000, **LARGE)

    return run_steps(body, sync=False)


def optimizer(*, is_fused=False, tensors=20):
    def body(loop, _):
        loop.launch(BF16, 400_000, **LARGE)
        if is_fused:
            loop.launch("void multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata<4>>(T1)", 100_000, **LARGE)
            return
        for _ in range(tensors):
            for operation in ("mul", "lerp_scalar", "addcmul_cuda", "sqrt_kernel", "addcdiv_cuda"):
                loop.launch(NATIVE.format(operation), 2_000)
                loop.python(8_000)

    return run_steps(body)


def branches(*, is_cured=False, value_bytes=1):
    def body(loop, _):
        for _ in range(4):
            loop.launch("triton_red_fused_gelu_gt_max_0", 10_000, **LARGE)
            if not is_cured:
                loop.copy("D2H", value_bytes, 1_000, blocking=True)
                loop.python(80_000)
            loop.launch(BF16, 20_000, **LARGE)

    return run_steps(body)


def batches(*, host_ms=2.0, kernel_ms=1.0):
    """Prepare a batch on the host for so long, copy it, and compute."""

    def body(loop, _):
        loop.python(int(host_ms * MS))
        loop.copy("H2D", 1 << 20, 50_000)
        for _ in range(4):
            loop.launch(BF16, int(kernel_ms * MS / 4), **LARGE)
        loop.copy("D2H", 8, 1_000, blocking=True)

    return run_steps(body, sync=False)


def checkpoints(*, interval=10, read_bytes=50 << 20):
    def body(loop, number):
        for _ in range(6):
            loop.launch(BF16, 500_000, **LARGE)
        loop.copy("D2H", 8, 1_000, blocking=True)
        if interval and number % interval == interval - 2:
            for _ in range(4):
                loop.copy("D2H", read_bytes, 4 * MS, blocking=True)
                loop.python(10 * MS)

    return run_steps(body, steps=24, sync=False)


def fixed_rate(*, period_ms=40.0, kernel_ms=4.0, drift_ms=0.0):
    def body(loop, number):
        loop.launch("convert(float *)", int(kernel_ms * MS), **LARGE)
        loop.sync(wakes=0)
        elapsed_ns = loop.host.now - loop.steps[-1].host_start_ns
        loop.python(int((period_ms + drift_ms * (number % 5)) * MS) - elapsed_ns)

    return run_steps(body, steps=30, sync=False)


def turns(*, waits=True):
    """Let the GPU work for 2 ms and the host for 2 ms; without waits the next step is launched before."""

    def body(loop, _):
        loop.launch("solve(float *)", 2 * MS, **LARGE)
        if waits:
            loop.sync()
        loop.python(2 * MS)

    return run_steps(body, sync=False)


def gradients(*, after=True):
    def body(loop, _):
        for number in range(8):
            loop.launch(BF16, 300_000, **LARGE)
            if not after and number >= 4:
                loop.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", 100_000, stream=20)
        for _ in range(8 if after else 0):
            loop.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", 100_000, stream=NULL)
            loop.python(20_000)

    return run_steps(body)


NULL = planted.NULL_STREAM


def waits(*, waits_each=True):
    def body(loop, _):
        for name in ("advect", "diffuse", "project", "bound", "advance", "reduce"):
            loop.launch(f"{name}(double *)", 30_000, **LARGE)
            if waits_each:
                loop.sync(wakes=5_000)

    return run_steps(body)


def norms(*, reads=8):
    def body(loop, _):
        loop.launch(BF16, 300_000, **LARGE)
        for number in range(8):
            loop.launch("void reduce_kernel<512, 1, ReduceOp<float, NormTwoOps<float>>>(T3)", 10_000, **LARGE)
            if number < reads:
                loop.copy("D2H", 4, 1_000, blocking=True)
                loop.python(20_000)

    return run_steps(body)


def single_kernel(**shape):
    def body(loop, _):
        loop.launch("fill(float *)", 200_000, **LARGE)
        loop.launch("total(float *)", 600_000, **shape)

    return run_steps(body)


def loads(*, steps_with_loads=(3, 5, 8, 11, 14)):
    def body(loop, number):
        if number in (0, *steps_with_loads):
            start = loop._call("module", 20 * MS)
            loop.host.call("cuLibraryLoadData", start=start, takes=20 * MS)
        for _ in range(4):
            loop.launch(BF16, 500_000, **LARGE)

    return run_steps(body, steps=16)


def convolutions(*, converts=True):
    def body(loop, _):
        for _ in range(4):
            if converts:
                loop.launch("void cudnn::ops::nchwToNhwcKernel<__half, __half, float>(T3)", 100_000, **LARGE)
            loop.launch("sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc", 400_000, **LARGE)

    return run_steps(body)


def modules(*, count=30):
    def body(loop, _):
        for number in range(count):
            with loop.host.nvtx(f"XlaModule:#hlo_module=jit_op{number},program_id={number}#"):
                loop.launch(f"loop_add_fusion_{number}", 2_000)
                loop.python(10_000)
        loop.launch("loop_multiply_fusion", 50_000)

    return run_steps(body, sync=False)


def graph_updates(*, updates=20):
    def body(loop, _):
        for _ in range(updates):
            start = loop._call("launch", 10_000)
            loop.host.call("cuGraphExecKernelNodeSetParams_v2", start=start, takes=10_000)
        loop.graph(graph_ns=50_000)

    return run_steps(body, steps=10)


AILING = {
    "fp32-gemm": partial(gemms, FP32),
    "fp64-gemm": partial(gemms, FP64),
    "attention-unfused": attention,
    "optimizer-per-parameter": optimizer,
    "graph-break": branches,
    "host-input": batches,
    "checkpoint-stall": checkpoints,
    "paced-outside": fixed_rate,
    "alternating": turns,
    "gradient-reduction-late": gradients,
    "sync-each-launch": waits,
    "scalar-read-backs": norms,
    "one-block": partial(single_kernel, grid=(1, 1, 1), block=(256, 1, 1)),
    "small-blocks": partial(single_kernel, grid=(4096, 1, 1), block=(16, 1, 1)),
    "compile-in-loop": loads,
    "layout-conversion": convolutions,
    "op-by-op": modules,
    "graph-node-updates": graph_updates,
}
CURED = {
    "fp32-gemm": [partial(gemms, TF32), partial(gemms, BF16), partial(gemms, FP32, other_names=[TF32, TF32, TF32])],
    "fp64-gemm": [partial(gemms, FP32), partial(gemms, TF32)],
    "attention-unfused": [partial(attention, is_fused=True), norms],
    "optimizer-per-parameter": [partial(optimizer, is_fused=True), partial(optimizer, tensors=4)],
    "graph-break": [partial(branches, is_cured=True), partial(branches, value_bytes=4)],
    "host-input": [partial(batches, host_ms=0.05), turns],
    "checkpoint-stall": [partial(checkpoints, interval=0), partial(checkpoints, read_bytes=1 << 10)],
    "paced-outside": [
        partial(fixed_rate, drift_ms=3.0),
        partial(fixed_rate, period_ms=37.0),
        partial(fixed_rate, kernel_ms=30.0),
    ],
    "alternating": [partial(turns, waits=False), planted.launch_bound],
    "gradient-reduction-late": [partial(gradients, after=False), partial(gemms, BF16)],
    "sync-each-launch": [partial(waits, waits_each=False), turns],
    "scalar-read-backs": [partial(norms, reads=1), branches],
    "one-block": [partial(single_kernel, **LARGE), partial(gemms, BF16)],
    "small-blocks": [partial(single_kernel, **LARGE), partial(single_kernel, grid=(1, 1, 1), block=(1, 1, 1))],
    "compile-in-loop": [partial(loads, steps_with_loads=())],
    "layout-conversion": [partial(convolutions, converts=False)],
    "op-by-op": [partial(modules, count=1)],
    "graph-node-updates": [partial(graph_updates, updates=2)],
}
