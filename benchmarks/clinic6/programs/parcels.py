"""Evaluate a land cover network: segment aerial images and fill the confusion matrix of all classes."""

from __future__ import annotations

import numpy as np
import torch
from harness import arguments, measure
from torch.cuda import nvtx
from torchvision.models.segmentation import fcn_resnet50

BATCH, SIZE, CLASSES = 8, 512, 19


def main() -> None:
    args = arguments(__doc__)
    torch.manual_seed(0)
    model = fcn_resnet50(weights=None, weights_backbone=None, num_classes=CLASSES)
    model = model.cuda().bfloat16().to(memory_format=torch.channels_last).eval()
    images = torch.randn(BATCH, 3, SIZE, SIZE, device="cuda", dtype=torch.bfloat16)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(CLASSES, (BATCH, SIZE, SIZE))
    gpu_labels, host_labels = labels.cuda(), labels.numpy().ravel()
    gpu_matrix = torch.zeros(CLASSES * CLASSES, device="cuda", dtype=torch.int64)
    host_matrix = np.zeros(CLASSES * CLASSES, dtype=np.int64)

    def count(classes: torch.Tensor) -> None:
        nonlocal host_matrix
        if args.variant == "cured":
            gpu_matrix.add_(torch.bincount((gpu_labels * CLASSES + classes).flatten(), minlength=CLASSES**2))
        else:
            host_matrix += np.bincount(host_labels * CLASSES + classes.cpu().numpy().ravel(), minlength=CLASSES**2)

    @torch.inference_mode()
    def step(_: int) -> None:
        with nvtx.range("network"):
            classes = model(images)["out"].argmax(1)
        with nvtx.range("confusion"):
            count(classes)

    measure(args, step, torch.cuda.synchronize)


main()
