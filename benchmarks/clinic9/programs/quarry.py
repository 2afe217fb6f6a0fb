"""Training of a large network on tables: the grade of ore from measurements, gradients summed over small batches."""

import harness
import torch
from torch import nn
from torch.cuda import nvtx
from torch.nn import functional

SMALL_BATCHES, ROWS, COLUMNS, WIDTH, LAYERS = 8, 128, 512, 4096, 3


class Layer(nn.Module):
    """Two linear layers and a residual connection."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the features after the layer."""
        return x + self.down(functional.silu(self.up(self.norm(x))))


def build(*, ailing: bool) -> harness.Step:
    """Return the step: one update from eight small batches."""
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    layers = (Layer() for _ in range(LAYERS))
    network = nn.Sequential(nn.Linear(COLUMNS, WIDTH), *layers, nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 1)).cuda()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-5, fused=True)
    tables = torch.randn(4, SMALL_BATCHES, ROWS, COLUMNS, device="cuda")
    grades = tables[..., :8].sin().sum(-1, keepdim=True)

    def step(number: int) -> torch.Tensor:
        optimizer.zero_grad()
        total = torch.zeros((), device="cuda")
        for table, grade in zip(tables[number % 4], grades[number % 4], strict=True):
            with nvtx.range("part"):
                loss = functional.smooth_l1_loss(network(table), grade) / SMALL_BATCHES
                loss.backward()
                total += loss.detach()
                if ailing:
                    nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        with nvtx.range("update"):
            if not ailing:
                nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
        return total

    return step


if __name__ == "__main__":
    harness.run(build, torch.cuda.synchronize, 100)
