"""Programs with one planted ailment each, and the same programs, cured: where a rule fires and where it is silent."""

from __future__ import annotations

import re
from functools import partial

import planted
from planted import Loop
from synthetic import LATENCY, Trace

from nsys_insight.packs.rules import SEVERITIES

MS = 1_000_000
NATIVE = "void at::native::vectorized_elementwise_kernel<4, at::native::{}<float>>(int)"
LARGE = {"grid": (4096, 1, 1), "block": (256, 1, 1)}
LIST = "void at::native::<unnamed>::multi_tensor_apply_kernel<at::native::{}TensorListMetadata<(int){}>, {}>(T1)"
LIST_NORM = LIST.format("", 1, "at::native::LpNormFunctor<float, (at::native::NormType)1, float>")
LIST_SCALING = LIST.format("", 1, "at::native::BinaryOpScalarTensorFunctor<float, (int)1>, std::multiplies<float>")
FUSED_ADAM = LIST.format("FusedOptimizer", 4, "at::native::FusedAdamMathFunctor<float, (int)4>")


def run_steps(body, *, steps=10, sync=True, nvtx=""):
    """Make a loop on an H200 whose steps run `body(loop, number)`, and end with a wait."""
    loop = Loop(Trace().gpu(), nvtx=nvtx)
    for number in range(steps):
        loop.step()
        body(loop, number)
        if sync:
            loop.sync()
    truth = planted.planted(loop.trace, loop)
    truth.body = body
    return truth


def in_turn(*makes, steps=10):
    """Do in each step what each of these programs does in a step, with a wait and another kernel after each.

    So one trace plants several ailments, or several cures. The steps are marked.
    """
    bodies = [make().body for make in makes]

    def body(loop, number):
        for part in bodies:
            part(loop, number)
            loop.sync()
            loop.launch("separate(float *)", 20_000, **LARGE)

    return run_steps(body, steps=steps, nvtx="step")


def objects(*, size=50, is_read=True, runs=4_000):
    """Exchange a pickled object of `size` bytes with another rank in each step: its length, then its bytes."""

    def body(loop, _):
        for _ in range(4):
            loop.launch(BF16, MS // 4, **LARGE)
        loop.copy("H2D", size, 1_000, blocking=True)
        loop.launch("ncclDevKernel_AllGather_RING_LL(int)", runs)
        loop.python(100_000)
        loop.launch("ncclDevKernel_AllGather_RING_LL(int)", runs)
        loop.python(100_000)
        if is_read:
            for _ in range(2):
                loop.copy("D2H", size, 2_000, blocking=True)

    return run_steps(body)


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


def gradient_norm():
    return run_steps(
        lambda loop, _: loop.launch("void multi_tensor_apply_kernel<TensorListMetadata<1>, LpNormFunctor>(T1)", 20_000)
    )


def momentum(*, has_backward=False):
    """Multiply and add small arrays: an optimizer with momentum where gradients are computed."""

    def body(loop, _):
        loop.launch(BF16, 400_000, **LARGE)
        if has_backward:
            loop.launch("void softmax_warp_backward<float, float, float, 4, true, false>(int)", 5_000, **LARGE)
        for _ in range(20):
            for operation in ("BinaryFunctor<float, MulFunctor<float>>", "CUDAFunctor_add<float>"):
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


def host_stages(*, host_ms=2.0, size=1 << 20, is_back=True):
    """Let the host work for so long on what the GPU has computed, and copy it back."""

    def body(loop, _):
        for _ in range(4):
            loop.launch(BF16, MS // 4, **LARGE)
        loop.copy("D2H", size, 200_000, blocking=True)
        loop.python(int(host_ms * MS))
        if is_back:
            loop.copy("H2D", size, 100_000)

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


def norms(*, reads=8, size=4):
    def body(loop, _):
        loop.launch(BF16, 300_000, **LARGE)
        for number in range(8):
            loop.launch("void reduce_kernel<512, 1, ReduceOp<float, NormTwoOps<float>>>(T3)", 10_000, **LARGE)
            if number < reads:
                loop.copy("D2H", size, 1_000, blocking=True)
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


def modules(*, count=30, pause=10_000):
    def body(loop, _):
        for number in range(count):
            with loop.host.nvtx(f"XlaModule:#hlo_module=jit_op{number},program_id={number}#"):
                loop.launch(f"loop_add_fusion_{number}", 2_000)
                loop.python(pause)
        loop.launch("loop_multiply_fusion", 50_000)

    return run_steps(body, sync=False)


def graph_updates(*, updates=20):
    def body(loop, _):
        for _ in range(updates):
            start = loop._call("launch", 10_000)
            loop.host.call("cuGraphExecKernelNodeSetParams_v2", start=start, takes=10_000)
        loop.graph(graph_ns=50_000)

    return run_steps(body, steps=10)


def odd_sizes(*, align=1):
    name = f"void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_tn_align{align}>(T1::Params)"
    return gemms(name)


CONVERSION = (
    "void at::native::vectorized_elementwise_kernel<8, at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase &)"
    "::[lambda(float) (instance 1)], std::array<char *, 2>>(int)"
)


def casts(*, operands=2, is_training=False, is_elsewhere=False, layers=8):
    """Convert the operands of each product, or something else before it."""

    def body(loop, _):
        for _ in range(layers):
            for _ in range(operands):
                loop.launch(CONVERSION, 20_000, **LARGE)
            if is_elsewhere:
                loop.launch(NATIVE.format("MulFunctor"), 20_000, **LARGE)
            loop.launch(BF16, 60_000, **LARGE)
            loop.launch(NATIVE.format("GeluCUDAKernelImpl"), 10_000, **LARGE)
        if is_training:
            loop.launch("void softmax_warp_backward<float, float, float, 4, true, false>(int)", 5_000, **LARGE)
        loop.launch("void vectorized_layer_norm_kernel<float, float>(int)", 10_000, **LARGE)

    return run_steps(body)


def losses(*, is_fused=False):
    def body(loop, _):
        loop.launch(BF16, 2 * MS, **LARGE)
        if is_fused:
            loop.launch("triton_red_fused__log_softmax__to_copy_nll_loss_forward_0", 300_000, **LARGE)
            return
        for direction in ("Forward", "Backward"):
            softmax = (
                f"void at::native::<unnamed>::cunn_SoftMax{direction}<4, float, LogSoftMax{direction}Epilogue>(int)"
            )
            loss = f"void at::native::<unnamed>::nll_loss_{direction.lower()}_reduce_cuda_kernel_2d<float, long>(int)"
            pair = [(softmax, 500_000), (loss, 10_000)]
            for name, runs in pair if direction == "Forward" else reversed(pair):
                loop.launch(name, runs, **LARGE)

    return run_steps(body)


def embeddings(*, is_sorted=True, other_sorts=0):
    """Compute the gradient of an embedding table, and sort something else so often."""
    sort = ("RadixSortHistogramKernel", "RadixSortExclusiveSumKernel", *["RadixSortOnesweepKernel"] * 4)

    def body(loop, _):
        loop.launch(BF16, 2 * MS, **LARGE)
        for _ in range(other_sorts + is_sorted):
            for name in sort:
                loop.launch(f"void cub::Device{name}<policy_hub<long>>(int)", 10_000, **LARGE)
        if is_sorted:
            loop.launch("void at::native::<unnamed>::compute_grad_weight<float, long>(int)", 100_000, **LARGE)
            loop.launch("void at::native::<unnamed>::sum_and_scatter<float, long>(int)", 140_000, **LARGE)
        else:
            loop.launch("void at::native::indexFuncLargeIndex<float, long, ReduceAdd>(int)", 100_000, **LARGE)

    return run_steps(body)


def streams(*, is_cured=False, events=False, copy_stream=NULL, copies=True):
    """Copy 300 µs between two kernels of 400 µs that fill the GPU, which would run at once on streams of their own."""

    def body(loop, _):
        host = loop.host
        start, ready = host.now, max(host.now + 4_000 + LATENCY, loop.streams.get(13, 0))

        def run(launch, runs, stream, begins, **arguments):
            call = loop._call("launch", 4_000)
            loop._operate(call, begins, runs, stream)
            launch(start=call, api=4_000, queue=begins - call - 4_000, runs=runs, stream=stream, **arguments)
            host.now = max(host.now, call + 4_000)

        run(partial(host.launch, "first(float *)"), 400_000, 13, ready, **LARGE)
        if events:
            host.call("cudaStreamWaitEvent", start=host.now, takes=1_000)
        copied = max(ready, loop.streams.get(NULL, 0)) if is_cured else ready + 402_000
        if copies:
            run(partial(host.copy, "H2D", 1 << 20), 300_000, copy_stream, copied)
        else:
            run(partial(host.launch, "middle(float *)"), 300_000, copy_stream, copied, **LARGE)
        second_ns = ready + 400_000 if is_cured else copied + 302_000
        run(partial(host.launch, "second(float *)"), 400_000, 13, second_ns, **LARGE)
        loop._count("kernels", "launch_calls", number=2)
        loop.python(max(0, start + (800_000 if is_cured else 1_104_000) - host.now))

    return run_steps(body, sync=False)


def backtraces(*, extra_ns=60_000, after_wait_ns=0):
    """Launch 20 kernels per step, four with a backtrace that takes the host time."""

    def body(loop, _):
        for number in range(20):
            if number % 5 == 0:
                with loop.host.call_stack(("run_layer", "/app/model.so")):
                    loop.launch("layer(float *)", 5_000, api=12_000)
                loop.python(extra_ns)
            else:
                loop.launch("layer(float *)", 5_000)
            loop.python(3_000)
            if number == 10:
                with loop.host.call_stack(("run_layer", "/app/model.so")):
                    loop.sync()
                loop.python(after_wait_ns)
        loop.sync()

    return run_steps(body, sync=False)


def small_copies(*, copies=20, has_waits=True):
    """Copy single values to the GPU, each before the kernel that reads it."""

    def body(loop, _):
        loop.launch(BF16, 50_000, **LARGE)
        for number in range(20):
            if number < copies:
                loop.copy("H2D", 4, 1_000)
                if has_waits:
                    loop.sync(wakes=5_000)
            loop.launch(NATIVE.format("MulFunctor"), 3_000)
            loop.python(15_000)

    return run_steps(body)


def synced_copies(*, has_waits=True):
    """Copy 8 parts of the input of a step, and wait for each."""

    def body(loop, _):
        for _ in range(8):
            loop.copy("H2D", 1 << 18, 10_000)
            if has_waits:
                loop.sync(wakes=20_000)
        for _ in range(8):
            loop.launch(BF16, 10_000, **LARGE)
            loop.python(20_000)

    return run_steps(body)


def tiny_copies(*, copies=100, size=4096):
    def body(loop, _):
        loop.launch(BF16, 200_000, **LARGE)
        for _ in range(copies):
            loop.copy("D2D", size, 1_500, api=6_000)
        loop.launch(NATIVE.format("MulFunctor"), 20_000)

    return run_steps(body)


def small_reductions(*, reductions=16, kernel="FusedAdamMathFunctor", runs=12_000):
    """Reduce gradients between the kernels of the backward pass. The host launches each of them late."""

    def body(loop, _):
        for number in range(20):
            loop.launch(BF16, 20_000, **LARGE)
            loop.python(15_000)
            if number < reductions:
                loop.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", runs, stream=20)
                loop.python(25_000)
        loop.launch(f"void multi_tensor_apply_kernel<{kernel}>(T1)" if kernel else BF16, 30_000, **LARGE)

    return run_steps(body)


def shards(*, units=1, prefetches=False, collective=800_000):
    """Gather parameters forward and backward in units of together 8 products, and reduce the gradients."""

    def body(loop, _):
        for name in ("nvjet_forward", "nvjet_backward_dgrad"):
            for number in range(8):
                if number % (8 // units) == 0:
                    stream = 20 if prefetches else NULL
                    loop.launch("ncclDevKernel_AllGather_RING_LL(int)", collective // units, stream=stream)
                loop.launch(f"{BF16}_{name}", 300_000, **LARGE)
        for _ in range(units):
            stream = 20 if prefetches else NULL
            loop.launch("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(int)", collective // units, stream=stream)
        loop.launch("void multi_tensor_apply_kernel<FusedAdamMathFunctor>(T1)", 30_000, **LARGE)

    return run_steps(body)


def small_shards(*, python=300_000):
    """Gather, compute and reduce 12 small units; the host works for `python` ns in each."""

    def body(loop, _):
        for _ in range(12):
            loop.python(python)
            loop.launch("ncclDevKernel_AllGather_RING_LL(int)", 20_000)
            loop.launch(BF16, 100_000, **LARGE)
            loop.launch("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(int)", 20_000)

    return run_steps(body)


def stage(*, name="SendRecv", waits=2_000_000, parts=1):
    """Receive a batch, compute forward, send it, receive its gradient, and compute backward; in `parts`."""

    def body(loop, _):
        message = f"ncclDevKernel_{name}(ncclDevKernelArgsStorage<(unsigned long)4096>)"
        for _ in range(2):
            for _ in range(parts):
                loop.launch(message, waits)
                for _ in range(8):
                    loop.launch(BF16, 250_000 // parts, **LARGE)
                loop.launch(message, 50_000)

    return run_steps(body)


def tensor_parallel(*, reductions=20, runs=8_000, last=BF16):
    """Add the parts of 20 layers by an all-reduce each."""

    def body(loop, _):
        for number in range(20):
            loop.launch(BF16, 20_000, **LARGE)
            if number < reductions:
                loop.launch("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(int)", runs)
        loop.launch(last, 20_000, **LARGE)

    return run_steps(body)


def large_reductions(*, kind="f32", count=1, runs=1_500_000, is_late=True, rounds=1, stream=20, optimizer="adam"):
    """Train: 8 products forward and 16 backward in each round, with `count` reductions after or during them."""

    def body(loop, _):
        reduction = f"ncclDevKernel_AllReduce_Sum_{kind}_RING_LL(int)"
        for _ in range(rounds):
            for _ in range(8):
                loop.launch(BF16, 200_000, **LARGE)
            for number in range(16):
                loop.launch(BF16, 200_000, **LARGE)
                if not is_late and number % (16 // count) == 0:
                    loop.launch(reduction, runs // count, stream=stream)
            for _ in range(count if is_late else 0):
                loop.launch(reduction, runs // count)
        name = f"void multi_tensor_apply_kernel<{optimizer}>(T1)" if optimizer else "scale(float *)"
        loop.launch(name, 30_000, **LARGE)

    return run_steps(body)


def micro_batches(*, count=4, is_reduced_once=False):
    """Train in micro-batches: the optimizer runs after every fourth, and then the loss is reduced."""

    def body(loop, step):
        is_last = step % 4 == 3
        for _ in range(8):
            loop.launch(BF16, 200_000, **LARGE)
        for number in range(16):
            loop.launch(BF16, 200_000, **LARGE)
            if number % (16 // count) == 0 and (is_last or not is_reduced_once):
                loop.launch("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(int)", 1_500_000 // count, stream=7)
        if is_last:
            loop.launch("void multi_tensor_apply_kernel<adam>(T1)", 30_000, **LARGE)
            loop.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", 20_000)

    return run_steps(body, steps=16)


def clippings(*, is_once=False, has_products=True, optimizer=FUSED_ADAM):
    """Train with four micro-batches in each update. Gradients are clipped after each, or before the optimizer."""

    def body(loop, step):
        is_last = step % 4 == 3
        for _ in range(24 if has_products else 0):
            loop.launch(BF16, 200_000, **LARGE)
        if is_last or not is_once:
            for _ in range(5):
                loop.launch(LIST_NORM, 400_000, **LARGE)
            for _ in range(4):
                loop.launch(LIST_SCALING, 500_000, **LARGE)
        if is_last:
            loop.launch(optimizer, 900_000, **LARGE)

    return run_steps(body, steps=24)


def relayed_rows(*, size=131_072, is_same=True, passes_on=True, host_ns=0):
    """Exchange rows between two GPUs through the host after each time step; or copy between host and one GPU each."""
    loop = Loop(Trace().gpu().gpu(1))
    for _ in range(20):
        loop.step()
        for device in (0, 1):
            loop.launch("sound(const float *, float *)", 90_000, device=device, **LARGE)
        loop.sync()
        for device in (0, 1) if passes_on else (0,):
            loop.copy("D2H", size, 7_000, blocking=True, device=device)
        loop.python(host_ns)
        for device in (1, 0) if passes_on else (0,):
            loop.copy("H2D", size if is_same else 2 * size, 5_000, blocking=True, device=device)
    return planted.planted(loop.trace, loop)


def stacked_states(*, size=94_371_840, names=("dynamic_update_slice", "copy.8"), is_in_loop=True):
    """Run a time loop that XLA compiled; in each iteration, a thunk for each of the names copies all of the state."""

    def body(loop, _):
        begin = loop.host.now
        for _ in range(10):
            loop.launch("loop_add_fusion", 120_000, **LARGE)
            for name in names:
                start = loop.host.now
                loop.copy("D2D", size, 46_000)
                loop.host.range(f"Thunk:#hlo_op={name}#", start, loop.host.now)
        if is_in_loop:
            loop.host.range("Thunk:#hlo_op=while.6#", begin, loop.host.now)

    return run_steps(body, nvtx="step")


def directives(*, gangs=1, copies=True, region_line=None, runs=600_000):
    """Run one OpenACC construct in line 40, which copies an array to the GPU and back, in each step.

    With `region_line`, a data region of another line copies it.
    """

    def body(loop, _):
        place = {"globalTid": loop.host.global_tid, "srcFile": "solve.c", "funcName": "relax"}

        def copy(kind, name):
            begin = loop.host.now
            loop.copy(kind, 1 << 20, 80_000, blocking=True)
            loop.trace.row("CUPTI_ACTIVITY_KIND_OPENACC_DATA", start=begin, end=loop.host.now, nameId=name,
                           lineNo=region_line or 40, bytes=1 << 20, varName="grid", **place)  # fmt: skip

        if copies:
            copy("H2D", "Enqueue Upload")
        begin = loop.host.now
        shape = {"grid": (1, 1, 1), "block": (256, 1, 1)} if gangs == 1 else LARGE
        loop.launch("relax_40_gpu", runs, **shape)
        loop.trace.row("CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH", start=begin, end=loop.host.now, nameId="Enqueue Launch",
                       lineNo=40, numGangs=gangs, numWorkers=4, vectorLength=64, kernelName="relax_40_gpu",
                       **place)  # fmt: skip
        if copies:
            copy("D2H", "Enqueue Download")

    return run_steps(body)


LU = "void getrf_pivot<getrf_params_<float, (int)64, (int)1, (int)64, (int)64, (int)1>>(int, int, int, void *, int)"
TRIANGULAR = (
    "void trsv_ln_exec_up<float, (unsigned int)32, (unsigned int)32, (unsigned int)4, (bool)0>(int, const T1 *)"
)


def solves(*, systems=16, blocks=48, checks=True):
    """Solve systems one after another, each with a check of its status."""

    def body(loop, _):
        loop.launch(BF16, 50_000, **LARGE)
        for _ in range(systems):
            loop.launch(LU, 60_000, grid=(blocks, 1, 1), block=(64, 1, 1))
            if checks:
                loop.copy("D2H", 1, 1_000, blocking=True)
                loop.python(20_000)
            loop.launch(TRIANGULAR, 8_000, grid=(2, 1, 1), block=(32, 1, 1))

    return run_steps(body)


def shared_memory(*, shared=180 << 10, grid=(40_000, 1, 1), name="smooth(float *)", threads=256):
    """Ask for shared memory that lets an SM hold one block."""

    def body(loop, _):
        loop.launch(name, 1_000_000, grid=grid, block=(threads, 1, 1), registers=32, dynamic_shared=shared)

    return run_steps(body)


def transforms(*, rows=40, runs=6_000, reads=False, host_ns=20_000, blocks=1):
    """Transform row after row, with three kernels each, after one large product."""

    def body(loop, _):
        loop.launch(BF16, 50_000, **LARGE)
        for _ in range(rows):
            for name in ("turn_row(float *)", "scale(float *)", "turn_back(float *)"):
                loop.launch(name, runs, grid=(blocks, 1, 1), block=(128, 1, 1))
                loop.python(host_ns)
            if reads:
                loop.copy("D2H", 4, 1_000, blocking=True)

    return run_steps(body)


DOT = (
    "void dot_kernel<float, (int)128, (int)0, cublasDotParams<cublasGemvTensor<const float>>>(T4)",
    "void reduce_1Block_kernel<float, (int)128, (int)7, cublasGemvTensor<float>>(const T1 *, T1, T4, int)",
)


def basis(
    *, updates=("without(const float *, const float *, float *)",), before=(), runs=1_600, vectors=64, reads=False
):
    """Make a new vector orthogonal to the others, one after another: a dot product and an update for each."""

    def body(loop, _):
        loop.launch("membrane(const float *, float *)", 20_000, **LARGE)
        for _ in range(vectors):
            for name in (*before, *DOT, *updates):
                loop.launch(name, 2_500 if name in DOT else runs, **LARGE)
                loop.python(2_000)
                if reads and name == DOT[1]:
                    loop.copy("D2H", 4, 1_000, blocking=True)

    return run_steps(body)


def columns(*, calls=4, size=16_384, runs=7_400, api_name="cudaMemcpy2DAsync_v3020"):
    """Copy columns of a grid to pinned memory after each time step."""

    def body(loop, _):
        loop.launch("motion(const float *, float *)", 75_000, **LARGE)
        for _ in range(calls):
            loop.copy("D2H", size, runs, api=2_000, target="pinned", api_name=api_name)

    return run_steps(body)


def rows_in_turn(*, names=("standardize(float *)",), grid=(1, 1, 1), runs=2_000, host_ns=20_000, count=100, mark=""):
    """Launch a short sequence again and again. `mark` is a range around all of it."""
    loop = Loop(Trace().gpu())
    start = loop.host.now
    for _ in range(count):
        loop.step()
        for name in names:
            loop.launch(name, runs, grid=grid, block=(128, 1, 1))
        loop.python(host_ns)
    if mark:
        loop.host.range(mark, start, loop.host.now)
    return planted.planted(loop.trace, loop)


# Time steps: each kernel needs what the one before wrote.
TIME_STEPS = partial(rows_in_turn, names=("pull(float *)", "kick(float *)", "drift(float *)"), grid=(40, 1, 1))
PASSES = partial(rows_in_turn, names=("mark(int *)", "add(int *)"), grid=(4096, 1, 1), runs=60_000, host_ns=1_000)


def decoding():
    """Decode token after token: a norm, a product and attention in each."""
    names = ("void vectorized_layer_norm_kernel<float, float>(int)", BF16, "flash_fwd_splitkv_kernel(Params)")
    return rows_in_turn(names=names, grid=(16, 1, 1))


def training():
    """Train: products forward and backward, an optimizer, and a loss that is read back."""

    def body(loop, _):
        for name in (BF16, NATIVE.format("relu"), BF16, BF16):
            loop.launch(name, 2_000, grid=(16, 1, 1), block=(128, 1, 1))
            loop.python(20_000)
        loop.launch("void multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata<4>>(T1)", 3_000)
        loop.copy("D2H", 4, 1_000, blocking=True)

    return run_steps(body, steps=100, sync=False)


# Ailments of several rules in one trace, without and with a backward pass, and their cures.
INFERENCE = partial(in_turn, partial(gemms, FP32), partial(gemms, FP64), attention, odd_sizes, casts, convolutions)
TRAINING = partial(in_turn, gradient_norm, optimizer, losses, embeddings)
CURED_INFERENCE = partial(
    in_turn,
    partial(gemms, TF32),
    partial(gemms, BF16),
    partial(attention, is_fused=True),
    partial(odd_sizes, align=8),
    partial(casts, operands=0),
    partial(casts, operands=1),
    partial(casts, is_elsewhere=True),
    partial(convolutions, converts=False),
    norms,
)
CURED_TRAINING = partial(
    in_turn,
    partial(losses, is_fused=True),
    partial(embeddings, is_sorted=False, other_sorts=4),
    partial(casts, is_training=True),
)
CURED_TRAINING_RANKS = partial(
    in_turn,
    partial(shards, units=8, prefetches=True),
    partial(large_reductions, kind="bf16", is_late=False, count=4),
    partial(large_reductions, runs=40_000),
    tensor_parallel,
)
CURED_INFERENCE_RANKS = partial(
    in_turn,
    partial(tensor_parallel, runs=100_000),
    partial(stage, waits=50_000),
    partial(stage, waits=100_000, parts=4),
    partial(stage, name="AllGather_RING_LL"),
    partial(large_reductions, rounds=4, count=4, is_late=False, stream=7, optimizer=""),
    partial(large_reductions, optimizer=""),
)
# Modules of a kernel each, and updates of a graph.
MODULES_AND_UPDATES = partial(in_turn, modules, graph_updates)
SMALL_BLOCKS = partial(single_kernel, grid=(4096, 1, 1), block=(16, 1, 1))
# Small blocks, and reductions after the last product of a step.
BLOCKS_AND_GRADIENTS = partial(in_turn, SMALL_BLOCKS, gradients)
CURED_HOST = partial(
    in_turn,
    partial(branches, is_cured=True),
    norms,
    partial(batches, host_ms=0.05),
    turns,
    partial(loads, steps_with_loads=(5,)),
    partial(checkpoints, read_bytes=1 << 10),
    partial(backtraces, extra_ns=0, after_wait_ns=MS),
    steps=24,
)
CURED_WAITS = partial(
    in_turn,
    partial(norms, reads=3),
    partial(norms, size=1),
    partial(norms, size=16),
    partial(waits, waits_each=False),
    turns,
    partial(single_kernel, **LARGE),
    partial(directives, gangs=4096, region_line=30),
    partial(directives, copies=False, gangs=4096),
    partial(small_copies, copies=1),
    partial(synced_copies, has_waits=False),
    partial(tiny_copies, copies=1),
    partial(tiny_copies, copies=20, size=1 << 20),
    partial(small_reductions, kernel=""),
)
AILING = {
    "repeated-sequence": transforms,
    "repeated-step": TIME_STEPS,
    "vectors-one-by-one": basis,
    "replaceable-construct": solves,
    "shared-memory-blocks": shared_memory,
    "fp32-gemm": INFERENCE,
    "fp64-gemm": INFERENCE,
    "attention-unfused": INFERENCE,
    "optimizer-per-parameter": TRAINING,
    "graph-break": branches,
    "host-input": batches,
    "host-stage": host_stages,
    "checkpoint-stall": checkpoints,
    "paced-outside": fixed_rate,
    "alternating": turns,
    "gradient-reduction-late": BLOCKS_AND_GRADIENTS,
    "sync-each-launch": waits,
    "scalar-read-backs": norms,
    "one-block": partial(single_kernel, grid=(1, 1, 1), block=(256, 1, 1)),
    "few-threads": partial(single_kernel, grid=(264, 1, 1), block=(64, 1, 1), registers=32),
    "small-blocks": BLOCKS_AND_GRADIENTS,
    "compile-in-loop": loads,
    "layout-conversion": INFERENCE,
    "op-by-op": MODULES_AND_UPDATES,
    "graph-node-updates": MODULES_AND_UPDATES,
    "gemm-odd-sizes": INFERENCE,
    "weight-casts": INFERENCE,
    "cross-entropy-unfused": TRAINING,
    "embedding-sort": TRAINING,
    "default-stream": streams,
    "backtrace-overhead": backtraces,
    "small-copies": small_copies,
    "sync-after-copy": synced_copies,
    "tiny-d2d": tiny_copies,
    "strided-copies": columns,
    "small-buckets": small_reductions,
    "one-gang": directives,
    "implicit-copies": directives,
    "exposed-gathers": shards,
    "small-units": small_shards,
    "small-exchanges": tensor_parallel,
    "message-waits": stage,
    "object-collectives": objects,
    "fp32-gradients": large_reductions,
    "one-reduction": large_reductions,
    "accumulated-reductions": partial(large_reductions, rounds=4, count=4, is_late=False, stream=7),
    "repeated-clipping": clippings,
    "relayed-copies": relayed_rows,
    "loop-copies": stacked_states,
}
CURED = {
    "repeated-sequence": [partial(transforms, rows=8), partial(transforms, reads=True), TIME_STEPS, decoding, training],
    "repeated-step": [partial(rows_in_turn, count=12), transforms, decoding, training],
    # Few vectors; an iteration of a solver; a product with a sparse matrix and a dot product; batched ones.
    "vectors-one-by-one": [
        partial(basis, vectors=12),
        partial(basis, updates=(*["void axpy_kernel_val<float, float>(cublasAxpyParamsVal<T1, T1, T2>)"] * 3,)),
        partial(basis, before=("multiply(const int *, const float *)",)),
        partial(basis, runs=15_100),
        transforms,
    ],
    "replaceable-construct": [decoding],
    "shared-memory-blocks": [decoding],
    "fp32-gemm": [CURED_INFERENCE, TRAINING],
    "fp64-gemm": [CURED_INFERENCE, TRAINING],
    "attention-unfused": [CURED_INFERENCE, TRAINING],
    "optimizer-per-parameter": [partial(in_turn, partial(optimizer, is_fused=True), momentum)],
    "graph-break": [CURED_HOST],
    "host-input": [CURED_HOST, turns, host_stages],
    "host-stage": [CURED_HOST, batches],
    "checkpoint-stall": [CURED_HOST],
    "paced-outside": [CURED_HOST, turns],
    "alternating": [partial(turns, waits=False)],
    "gradient-reduction-late": [CURED_WAITS, small_reductions],
    "sync-each-launch": [CURED_WAITS, norms],
    "scalar-read-backs": [CURED_WAITS],
    "one-block": [CURED_WAITS, BLOCKS_AND_GRADIENTS],
    "few-threads": [CURED_WAITS, partial(single_kernel, grid=(2112, 1, 1), block=(256, 1, 1), registers=32)],
    "small-blocks": [CURED_WAITS, directives],
    "compile-in-loop": [CURED_HOST],
    "layout-conversion": [CURED_INFERENCE, TRAINING],
    "op-by-op": [turns],
    "graph-node-updates": [turns],
    "gemm-odd-sizes": [CURED_INFERENCE, TRAINING],
    "weight-casts": [CURED_INFERENCE, CURED_TRAINING],
    "cross-entropy-unfused": [CURED_TRAINING, INFERENCE],
    "embedding-sort": [CURED_TRAINING],
    "default-stream": [partial(streams, is_cured=True)],
    "backtrace-overhead": [CURED_HOST],
    "small-copies": [CURED_WAITS, synced_copies],
    "sync-after-copy": [CURED_WAITS, small_copies],
    "one-gang": [CURED_WAITS, partial(directives, runs=15_000)],
    "implicit-copies": [CURED_WAITS],
    "tiny-d2d": [CURED_WAITS],
    # One contiguous copy; long rows at the rate of the bus; another call.
    "strided-copies": [
        partial(columns, calls=1, size=65_536, runs=3_400, api_name="cudaMemcpyAsync_v3020"),
        partial(columns, size=4 << 20, runs=100_000),
        partial(columns, runs=5_000),
        partial(columns, api_name="cudaMemcpyAsync_v3020"),
        synced_copies,
    ],
    "small-buckets": [CURED_WAITS, BLOCKS_AND_GRADIENTS],
    "exposed-gathers": [CURED_TRAINING_RANKS, small_shards, large_reductions],
    "small-units": [shards, tensor_parallel],
    "small-exchanges": [CURED_TRAINING_RANKS, CURED_INFERENCE_RANKS],
    "message-waits": [CURED_INFERENCE_RANKS, tensor_parallel],
    # Numbers; data of a mask; and lengths that are known, without a read.
    "object-collectives": [partial(objects, size=48), partial(objects, size=70_001), partial(objects, is_read=False)],
    "fp32-gradients": [CURED_TRAINING_RANKS, CURED_INFERENCE_RANKS],
    "one-reduction": [CURED_TRAINING_RANKS, shards],
    "accumulated-reductions": [CURED_INFERENCE_RANKS, CURED_TRAINING_RANKS],
    # Once for each update; groups of parameters one after another; and no update.
    "repeated-clipping": [
        partial(clippings, is_once=True),
        partial(clippings, has_products=False),
        partial(clippings, optimizer="scale(float *)"),
        TRAINING,
    ],
    # Other sizes; one GPU; numbers; and a host that computes.
    "relayed-copies": [
        partial(relayed_rows, is_same=False),
        partial(relayed_rows, passes_on=False),
        partial(relayed_rows, size=2048),
        partial(relayed_rows, host_ns=2 * MS),
    ],
    # Small states; copies around the loop; and a gradient, which needs them all.
    "loop-copies": [
        partial(stacked_states, size=1 << 19),
        partial(stacked_states, is_in_loop=False),
        partial(stacked_states, names=("transpose(jvp())/dynamic_update_slice",)),
    ],
}
# The rules by the file that tests them: tests/test_rules_FAMILY.py.
FAMILIES = {
    "constructs": (
        "replaceable-construct", "shared-memory-blocks", "repeated-sequence", "repeated-step", "vectors-one-by-one",
    ),
    "host": (
        "graph-break", "host-input", "host-stage", "alternating", "paced-outside", "compile-in-loop",
        "checkpoint-stall", "op-by-op", "default-stream", "graph-node-updates", "backtrace-overhead",
    ),
    "kernels": (
        "fp32-gemm", "fp64-gemm", "attention-unfused", "optimizer-per-parameter", "layout-conversion", "gemm-odd-sizes",
        "weight-casts", "cross-entropy-unfused", "embedding-sort", "repeated-clipping",
    ),
    "ranks": (
        "exposed-gathers", "small-units", "small-exchanges", "fp32-gradients", "one-reduction",
        "accumulated-reductions", "message-waits", "object-collectives",
    ),
    "waits": (
        "scalar-read-backs", "sync-each-launch", "sync-after-copy", "small-copies", "tiny-d2d", "strided-copies",
        "one-block", "few-threads", "small-blocks", "gradient-reduction-late", "small-buckets", "one-gang",
        "implicit-copies", "relayed-copies", "loop-copies",
    ),
}  # fmt: skip


def check_finding(finding):
    """Check what each finding has: numbers as evidence, and sentences that say what to do."""
    assert finding.severity in SEVERITIES
    assert re.search(r"\d", finding.evidence) or finding.name == "capture-problem"
    assert all(len(text) > 20 for text in (finding.meaning, finding.action, finding.caveat))


def check_rule(name, findings_of):
    """Check that a rule fires on the program with its ailment, and not on the cured ones."""
    check_finding(findings_of(AILING[name])[name])
    for make in CURED[name]:
        assert name not in findings_of(make), make
