"""Detect objects on the GPU and choose among the boxes on the CPU.

Ailing: the GPU waits while the CPU handles a frame, and the CPU waits while the GPU computes the next.
Cured: frame n + 1 is launched before frame n is handled.
"""

import harness
import numpy as np
import torch
from torch import nn


def suppress(boxes: np.ndarray, scores: np.ndarray) -> int:
    """Return how many of the best boxes stay when overlapping ones are removed."""
    order = scores.argsort()[::-1][:150]
    boxes, survivors = boxes[order], 0
    alive = np.ones(len(boxes), dtype=bool)
    for index, box in enumerate(boxes):
        if not alive[index]:
            continue
        survivors += 1
        low, high = np.maximum(boxes[:, :2], box[:2]), np.minimum(boxes[:, 2:], box[2:])
        shared = np.prod(np.clip(high - low, 0, None), axis=1)
        alive &= shared < 0.5 * np.prod(box[2:] - box[:2])
    return survivors


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    layers: list[nn.Module] = [nn.Conv2d(3, 128, 5, stride=2), nn.ReLU()]
    for _ in range(12):
        layers += [nn.Conv2d(128, 128, 3, padding=1), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Conv2d(128, 5, 16, stride=8)).cuda().half().to(memory_format=torch.channels_last)
    frame = torch.randn(4, 3, 512, 512, device="cuda", dtype=torch.half).to(memory_format=torch.channels_last)
    hosts = [torch.empty(4 * 30 * 30, 5, pin_memory=True) for _ in range(2)]
    events = [torch.cuda.Event() for _ in hosts]

    @torch.no_grad()
    def launch(index: int) -> None:
        candidates = model(frame)[:, :, :30, :30].permute(0, 2, 3, 1).reshape(-1, 5).float()
        hosts[index % 2][: len(candidates)].copy_(candidates, non_blocking=True)
        events[index % 2].record()

    def handle(index: int) -> int:
        events[index % 2].synchronize()
        candidates = hosts[index % 2].numpy()
        corners = np.concatenate([candidates[:, :2], candidates[:, :2] + 1 + np.abs(candidates[:, 2:4])], axis=1)
        return suppress(corners, candidates[:, 4])

    def step(index: int) -> int:
        if args.variant == "ailing":
            launch(index)
            return handle(index)
        if index == 0:
            launch(0)
        launch(index + 1)
        return handle(index)

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
