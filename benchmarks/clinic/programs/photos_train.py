"""Train a classifier on augmented images.

Ailing: NumPy augments each batch in the training process.
Cured: a DataLoader with persistent workers and pinned memory does it ahead.
"""

import harness
import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    """Synthetic photos, cropped, mirrored and normalized."""

    def __init__(self) -> None:
        self.pixels = np.random.default_rng(0).integers(0, 255, (256, 160, 160, 3), dtype=np.uint8)

    def __len__(self) -> int:  # noqa: D105
        return 1_000_000

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:  # noqa: D105
        image = self.pixels[index % len(self.pixels)]
        top, left = index * 7 % 32, index * 13 % 32
        image = image[top : top + 128, left : left + 128]
        if index % 2:
            image = image[:, ::-1]
        scaled = (image.astype(np.float32) / 255 - 0.45) / 0.225
        return np.ascontiguousarray(scaled.transpose(2, 0, 1)), index % 10


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    if args.variant == "cured":
        loader = DataLoader(Photos(), 64, num_workers=8, pin_memory=True, persistent_workers=True, prefetch_factor=4)
    else:
        loader = DataLoader(Photos(), 64)
    batches = iter(loader)
    model = nn.Sequential(
        nn.Conv2d(3, 64, 7, stride=2),
        nn.ReLU(),
        nn.Conv2d(64, 128, 3, stride=2),
        nn.ReLU(),
        nn.Conv2d(128, 256, 3, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(256, 10),
    )
    model = model.cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)

    def step(_: int) -> None:
        images, labels = next(batches)
        images = images.cuda(non_blocking=True).to(memory_format=torch.channels_last)
        labels = labels.cuda(non_blocking=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    harness.measure(args, step, torch.cuda.synchronize, warmup=10)


if __name__ == "__main__":
    main()
