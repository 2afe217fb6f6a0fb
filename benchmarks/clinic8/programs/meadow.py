"""Training of a detector on clouds of laser points: their features are summed into a map, which a network reads."""

import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import harness
import torch
from torch import nn
from torch.cuda import nvtx
from torch.nn import functional

CLOUDS, POINTS, CELLS, WIDTH = 8, 120_000, 64, 64


class Detector(nn.Module):
    """Features of points, their sums in cells, and a convolutional network on the map."""

    def __init__(self) -> None:
        super().__init__()
        self.points = nn.Sequential(nn.Linear(6, WIDTH), nn.ReLU())
        layers = [layer for _ in range(3) for layer in (nn.Conv2d(WIDTH, WIDTH, 3, padding=1), nn.ReLU())]
        self.network = nn.Sequential(*layers, nn.Conv2d(WIDTH, 4, 1))

    def forward(self, points: torch.Tensor, cells: torch.Tensor) -> torch.Tensor:
        """Return the heat maps of four kinds of objects."""
        with nvtx.range("points"):
            features = self.points(points)
        with nvtx.range("map"):
            sums = torch.zeros(CLOUDS * CELLS * CELLS, WIDTH, device="cuda").index_add(0, cells, features)
            spread = sums.index_select(0, cells)  # each point sees its cell
            sums = sums.index_add(0, cells, features * torch.sigmoid(spread))
        with nvtx.range("network"):
            return self.network(sums.view(CLOUDS, CELLS, CELLS, WIDTH).permute(0, 3, 1, 2))


def build(*, ailing: bool) -> harness.Step:
    """Return the step: one update of the detector."""
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(ailing)
    torch.set_float32_matmul_precision("high")
    detector = Detector().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(detector.parameters(), lr=1e-3, fused=True)
    batches = []
    for _ in range(3):
        place = torch.randn(CLOUDS, POINTS, 2, device="cuda") * torch.rand(CLOUDS, POINTS, 1, device="cuda") * 60
        cell = (place / 4 + CELLS / 2).long().clamp(0, CELLS - 1)
        cells = (torch.arange(CLOUDS, device="cuda")[:, None] * CELLS + cell[..., 1]) * CELLS + cell[..., 0]
        points = torch.cat([place / 60, torch.rand(CLOUDS, POINTS, 4, device="cuda")], dim=-1)
        target = (torch.rand(CLOUDS, 4, CELLS, CELLS, device="cuda") < 0.01).float()
        batches.append((points.view(-1, 6), cells.view(-1), target.to(memory_format=torch.channels_last)))

    def step(number: int) -> torch.Tensor:
        points, cells, target = batches[number % len(batches)]
        optimizer.zero_grad()
        loss = functional.binary_cross_entropy_with_logits(detector(points, cells), target)
        with nvtx.range("backward"):
            loss.backward()
        with nvtx.range("update"):
            optimizer.step()
        return loss.detach()

    return step


if __name__ == "__main__":
    harness.run(build, torch.cuda.synchronize)
