"""Train on several GPUs in five ways: with a late rank, with one that has more to compute, or with nothing planted.

    train.py MEETING_FILE times               time each run of RUNS without a profiler
    train.py MEETING_FILE NAME --profile      do one run, between cudaProfilerStart and cudaProfilerStop

RANK and WORLD_SIZE are set as torchrun sets them. Each rank prints one JSON line for each run: the time of each step on
the host, which waits for the GPU at the end of a step; for `sizes`, the time of each call by events on the GPU.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor, distributed, nn
from torch.distributed import nn as distributed_nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
WIDTH = 4096
STEPS = 16
LATE_RANK, LATE_EVERY, LATE_SECONDS = 2, 4, 0.010  # steps 3, 7, 11 and 15
LARGER_RANK = 1
TENSOR_RANKS = 2
MICROBATCHES = 8
KIB, MIB = 1 << 10, 1 << 20
VARIANTS = ("healthy", "late", "larger")

Step = Callable[[int], None]
mark = torch.cuda.nvtx.range


def wait_when_late(variant: str, number: int) -> None:
    """Be late, if this is the late rank of a late step: the data loader's worker has not finished."""
    if variant == "late" and rank == LATE_RANK and number % LATE_EVERY == LATE_EVERY - 1:
        time.sleep(LATE_SECONDS)


def network(layers: int) -> nn.Sequential:
    return nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(layers))).cuda()


def train_step(model: nn.Module, variant: str, rows: int) -> Step:
    """Return a step of data parallel training, in which the module reduces its own gradients."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    source = torch.randn(rows, WIDTH, dtype=torch.bfloat16).pin_memory()

    def step(number: int) -> None:
        with mark("data"):
            batch = source.cuda(non_blocking=True)
            wait_when_late(variant, number)
        with mark("forward"):
            loss = model(batch).float().square().mean()
        with mark("backward"):
            loss.backward()
        with mark("optimizer"):
            optimizer.step()
            optimizer.zero_grad()

    return step


def rows_of(variant: str, rows: int) -> int:
    return rows * 2 if variant == "larger" and rank == LARGER_RANK else rows


def ddp(variant: str) -> Step:
    model = nn.parallel.DistributedDataParallel(network(4).to(torch.bfloat16), device_ids=[rank], bucket_cap_mb=64)
    return train_step(model, variant, rows_of(variant, 8192))


def fsdp(variant: str, rows: int = 24576) -> Step:
    model = network(6)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)
    for layer in model:
        fully_shard(layer, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    return train_step(model, variant, rows_of(variant, rows))


def fsdp_small(variant: str) -> Step:
    """Train with a batch so small that each host takes longer than its GPU."""
    return fsdp(variant, 8192)


class CopyToRanks(torch.autograd.Function):
    """The input of a tensor parallel block: the gradients of its ranks are added up."""

    @staticmethod
    def forward(ctx, values, group):
        ctx.group = group
        return values

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.contiguous()
        distributed.all_reduce(gradient, group=ctx.group)
        return gradient, None


class AddUpRanks(torch.autograd.Function):
    """The output of a tensor parallel block: the parts of its ranks are added up."""

    @staticmethod
    def forward(ctx, values, group):  # noqa: ARG004
        distributed.all_reduce(values, group=group)
        return values

    @staticmethod
    def backward(ctx, gradient):  # noqa: ARG004
        return gradient, None


def tensor(variant: str) -> Step:
    """Divide each weight in groups of two ranks, and the batch between the groups."""
    tensor_group = data_group = None
    for first in range(0, world, TENSOR_RANKS):
        members = list(range(first, first + TENSOR_RANKS))
        group = distributed.new_group(members)
        tensor_group = group if rank in members else tensor_group
    for first in range(TENSOR_RANKS):
        members = list(range(first, world, TENSOR_RANKS))
        group = distributed.new_group(members)
        data_group = group if rank in members else data_group
    part = 2 * WIDTH // TENSOR_RANKS
    shapes = [(WIDTH, part), (part, WIDTH)] * 4
    weights = [torch.randn(shape, device="cuda", dtype=torch.bfloat16).mul_(0.01).requires_grad_() for shape in shapes]
    # Ranks of one tensor group have the same batch.
    rows = 8192 if variant == "larger" and rank // TENSOR_RANKS == 1 else 4096
    source = torch.randn(rows, WIDTH, dtype=torch.bfloat16).pin_memory()

    def step(number: int) -> None:
        with mark("data"):
            batch = source.cuda(non_blocking=True).requires_grad_()
            wait_when_late(variant, number)
        with mark("forward"):
            for first, second in zip(weights[::2], weights[1::2], strict=True):
                hidden = nn.functional.gelu(CopyToRanks.apply(batch, tensor_group) @ first)
                batch = batch + AddUpRanks.apply(hidden @ second, tensor_group)
            loss = batch.float().square().mean()
        with mark("backward"):
            loss.backward()
        with mark("reduce"):
            for weight in weights:
                distributed.all_reduce(weight.grad, group=data_group)
        with mark("optimizer"), torch.no_grad():
            for weight in weights:
                weight.sub_(1e-6 * weight.grad)
                weight.grad = None

    return step


def pipeline(variant: str) -> Step:
    """Run a stage on each rank, all forward passes before the backward ones, as in GPipe.

    `even` has as many layers as `larger`, but no stage with twice as many as the others.
    """
    layers = {"larger": [3, 6], "even": [3, 4, 4, 4]}.get(variant, []) + [3] * world
    model = network(layers[rank]).to(torch.bfloat16)
    source = torch.randn(2048, WIDTH, device="cuda", dtype=torch.bfloat16)
    before, after = rank - 1, rank + 1

    def step(number: int) -> None:
        passes = []
        for microbatch in range(MICROBATCHES):
            with mark("forward"):
                batch = source
                if before >= 0:
                    batch = torch.empty_like(source)
                    distributed.recv(batch, before)
                    batch.requires_grad_()
                if microbatch == 3:
                    if variant == "late":
                        torch.cuda.synchronize()
                    with mark("preprocess"):
                        wait_when_late(variant, number)
                result = model(batch)
                passes.append((batch, result))
                if after < world:
                    distributed.send(result.detach(), after)
        for batch, result in passes:
            with mark("backward"):
                if after < world:
                    gradient = torch.empty_like(result)
                    distributed.recv(gradient, after)
                    result.backward(gradient)
                else:
                    result.float().square().mean().backward()
                if before >= 0:
                    distributed.send(batch.grad, before)
        with mark("optimizer"), torch.no_grad():
            norm = torch.stack([p.grad.float().norm() for p in model.parameters()]).square().sum()
            distributed.all_reduce(norm)
            scale = (1e-4 / (1 + norm.sqrt())).to(torch.bfloat16)
            for p in model.parameters():
                p.sub_(p.grad * scale)
                p.grad = None

    return step


def experts(variant: str) -> Step:
    """Send the tokens of each rank to the experts, one on each rank, and their results back."""
    rows = 8192
    shares = [2 if variant == "larger" and expert == LARGER_RANK else 1 for expert in range(world)]
    tokens_to = [rows * share // sum(shares) for share in shares]
    tokens_to[0] += rows - sum(tokens_to)
    tokens_from = [tokens_to[rank]] * world
    layers = [network(2).to(torch.bfloat16) for _ in range(2)]
    gate = nn.Linear(WIDTH, WIDTH, device="cuda", dtype=torch.bfloat16)
    parameters = [p for layer in layers for p in layer.parameters()] + list(gate.parameters())
    optimizer = torch.optim.SGD(parameters, lr=1e-4)
    source = torch.randn(rows, WIDTH, dtype=torch.bfloat16).pin_memory()

    def exchange(values: Tensor, sizes: list[int], own_sizes: list[int]) -> Tensor:
        return distributed_nn.all_to_all_single(
            values.new_empty(sum(sizes), WIDTH), values.contiguous(), sizes, own_sizes
        )

    def step(number: int) -> None:
        with mark("data"):
            batch = source.cuda(non_blocking=True)
            wait_when_late(variant, number)
        with mark("forward"):
            for layer in layers:
                tokens = exchange(gate(batch), tokens_from, tokens_to)
                batch = batch + exchange(layer(tokens), tokens_to, tokens_from)
            loss = batch.float().square().mean()
        with mark("backward"):
            loss.backward()
        with mark("reduce"):
            for p in gate.parameters():
                distributed.all_reduce(p.grad)
        with mark("optimizer"):
            optimizer.step()
            optimizer.zero_grad()

    return step


def time_sizes() -> dict[str, list[float]]:
    """Run each operation with each size eight times; return µs by events.

    A small all-reduce comes before each call, and before that a pause of the GPU: so the host is ahead of it.
    """
    values = torch.zeros(256 * MIB // 4, device="cuda")
    all_values = torch.zeros(world * 64 * MIB // 4, device="cuda")
    results = torch.zeros(256 * MIB // 4, device="cuda")
    meet = torch.zeros(1, device="cuda")
    times = {}
    for size in (64 * KIB, MIB, 16 * MIB, 64 * MIB):
        n = size // 4
        calls = {
            "AllReduce": lambda n=n: distributed.all_reduce(values[:n]),
            "AllGather": lambda n=n: distributed.all_gather_into_tensor(all_values[: world * n], values[:n]),
            "ReduceScatter": lambda n=n: distributed.reduce_scatter_tensor(values[:n], all_values[: world * n]),
            "Broadcast": lambda n=n: distributed.broadcast(values[:n], 0),
            "AllToAll": lambda n=n: distributed.all_to_all_single(results[:n], values[:n]),
        }
        for name, call in calls.items():
            events = []
            for _ in range(8):
                torch.cuda._sleep(2_000_000)
                distributed.all_reduce(meet)
                events.append([torch.cuda.Event(enable_timing=True) for _ in range(2)])
                events[-1][0].record()
                call()
                events[-1][1].record()
            torch.cuda.synchronize()
            times[f"{name} {size}"] = [round(1e3 * start.elapsed_time(end), 1) for start, end in events]
    return times


KINDS = {function.__name__: function for function in (ddp, fsdp, fsdp_small, tensor, pipeline, experts)}
RUNS = [f"{kind}_{variant}" for kind in KINDS for variant in VARIANTS] + ["pipeline_even"]


def run(name: str, *, profile: bool) -> None:
    """Do a run and print its times."""
    torch.manual_seed(0)
    api = torch.cuda.cudart()
    kind, _, variant = name.rpartition("_")
    if name == "sizes":
        time_sizes()
    else:
        step = KINDS[kind](variant)
        for _ in range(6):
            step(0)
            torch.cuda.synchronize()
    distributed.barrier()
    torch.cuda.synchronize()
    if profile:
        api.cudaProfilerStart()
    if name == "sizes":
        times: dict[str, object] = {"us": time_sizes()}
    else:
        steps_ms = []
        for number in range(STEPS):
            start = time.perf_counter()
            with mark("step"):
                step(number)
                torch.cuda.synchronize()
            steps_ms.append(round(1e3 * (time.perf_counter() - start), 3))
        times = {"step_ms": steps_ms}
    torch.cuda.synchronize()
    if profile:
        api.cudaProfilerStop()
    distributed.barrier()
    print(json.dumps({"name": name, "rank": rank, "profiled": profile, **times}), flush=True)


def main() -> None:
    meeting_file, name = sys.argv[1:3]
    torch.cuda.set_device(rank)
    distributed.init_process_group("nccl", init_method=f"file://{meeting_file}", rank=rank, world_size=world)
    for run_name in [*RUNS, "sizes"] if name == "times" else [name]:
        run(run_name, profile="--profile" in sys.argv)
        gc.collect()
        torch.cuda.empty_cache()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
