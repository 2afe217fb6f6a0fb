"""Classify the photographs of camera traps: prepare a batch, upload it, run the network."""

from __future__ import annotations

import torch
from harness import arguments, measure
from torch.cuda import nvtx
from torchvision.models import resnet50

BATCH, SIZE = 128, 224


def main() -> None:
    args = arguments(__doc__)
    torch.manual_seed(0)
    model = resnet50(weights=None).cuda().bfloat16().to(memory_format=torch.channels_last).eval()
    photographs = [torch.randint(256, (BATCH, 3, SIZE, SIZE), dtype=torch.uint8).pin_memory() for _ in range(3)]
    ready = torch.empty(BATCH, 3, SIZE, SIZE).pin_memory()
    mean, scale = (torch.tensor(values).view(3, 1, 1) for values in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
    gpu_mean, gpu_scale = mean.cuda(), scale.cuda()

    def upload(batch: torch.Tensor) -> torch.Tensor:
        if args.variant == "cured":
            return batch.cuda().float().div_(255).sub_(gpu_mean).div_(gpu_scale)
        torch.div(batch, 255, out=ready)
        return ready.sub_(mean).div_(scale).cuda()

    @torch.inference_mode()
    def step(index: int) -> None:
        with nvtx.range("prepare and upload"):
            images = upload(photographs[index % 3])
        with nvtx.range("network"):
            model(images.bfloat16().contiguous(memory_format=torch.channels_last)).argmax(1)

    measure(args, step, torch.cuda.synchronize)


main()
