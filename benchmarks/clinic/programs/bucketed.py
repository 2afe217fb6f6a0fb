"""Train a transformer encoder on two GPUs with DistributedDataParallel.

Ailing: bucket_cap_mb=0.25 makes a collective of nearly every gradient.
Cured: buckets of 25 MB, reduced in BF16.
"""

import argparse
from collections.abc import Callable

import harness
import ranks
import torch
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook


def program(args: argparse.Namespace, rank: int) -> Callable[[int], None]:
    """Return the step of a rank."""
    layer = nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True, norm_first=True)
    model: nn.Module = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).cuda()
    is_cured = args.variant == "cured"
    cap = 25.0 if is_cured else 0.25
    replica = nn.parallel.DistributedDataParallel(
        model, device_ids=[rank], bucket_cap_mb=cap, gradient_as_bucket_view=True
    )
    if is_cured:
        replica.register_comm_hook(None, bf16_compress_hook)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    inputs = torch.randn(16, 256, 512, device="cuda")

    def step(_: int) -> None:
        with torch.autocast("cuda", torch.bfloat16):
            loss = replica(inputs).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


if __name__ == "__main__":
    ranks.run(harness.arguments(__doc__), program)
