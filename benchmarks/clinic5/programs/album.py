"""Describe photographs by vectors for a search: batches come from loader processes, pinned."""

from __future__ import annotations

import torch
from harness import arguments, measure
from torch import nn

BATCH, SIZE, LOADED = 256, 224, 4


def describer() -> nn.Sequential:
    """Return a shallow convolutional network that ends in a vector."""
    return nn.Sequential(
        nn.Conv2d(3, 64, 8, stride=4, padding=2),
        nn.ReLU(),
        nn.Conv2d(64, 128, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(128, 256, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(256, 128),
    )


def main() -> None:
    args = arguments(__doc__)
    is_cured = args.variant == "cured"
    torch.manual_seed(8)
    network = describer().to("cuda", torch.bfloat16, memory_format=torch.channels_last).eval()
    mean = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
    deviation = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)
    photos = torch.randint(256, (LOADED, BATCH, 3, SIZE, SIZE), dtype=torch.uint8)
    loader = [batch.pin_memory() if is_cured else ((batch / 255 - mean) / deviation).pin_memory() for batch in photos]
    scale, shift = (1 / (255 * deviation)).to("cuda"), (mean / deviation).to("cuda")
    vectors = torch.empty(LOADED, BATCH, 128, device="cuda", dtype=torch.bfloat16)

    @torch.inference_mode()
    def step(index: int) -> None:
        with torch.cuda.nvtx.range("upload"):
            batch = loader[index % LOADED].to("cuda", non_blocking=True)
        with torch.cuda.nvtx.range("prepare"):
            if is_cured:
                batch = batch * scale - shift
            batch = batch.to(torch.bfloat16, memory_format=torch.channels_last)
        with torch.cuda.nvtx.range("describe"):
            vectors[index % LOADED] = nn.functional.normalize(network(batch), dim=1)

    measure(args, step, torch.cuda.synchronize)


main()
