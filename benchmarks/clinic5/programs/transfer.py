"""Teach a new classifier on top of a pretrained residual network."""

from __future__ import annotations

import torch
from harness import arguments, measure
from torch import nn
from torch.nn import functional
from torchvision.models import resnet18

CLASSES, BATCH = 37, 192


def main() -> None:
    args = arguments(__doc__)
    torch.manual_seed(3)
    backbone = resnet18(weights=None)
    backbone.fc = nn.Identity()
    backbone = backbone.to("cuda", torch.bfloat16, memory_format=torch.channels_last).eval()
    classifier = nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, CLASSES)).to("cuda", torch.bfloat16)
    if args.variant == "cured":
        backbone.requires_grad_(requires_grad=False)
    optimizer = torch.optim.SGD(classifier.parameters(), lr=1e-2, momentum=0.9, foreach=True)
    images = torch.randn(BATCH, 3, 224, 224, device="cuda", dtype=torch.bfloat16)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(CLASSES, (BATCH,), device="cuda")

    def step(index: int) -> None:  # noqa: ARG001
        optimizer.zero_grad()
        with torch.cuda.nvtx.range("backbone"):
            features = backbone(images)
        with torch.cuda.nvtx.range("classifier"):
            loss = functional.cross_entropy(classifier(features).float(), labels)
        with torch.cuda.nvtx.range("backward"):
            loss.backward()
        with torch.cuda.nvtx.range("optimizer"):
            optimizer.step()

    measure(args, step, torch.cuda.synchronize)


main()
