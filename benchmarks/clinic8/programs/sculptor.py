"""The surface of a neural shape: the distance to it at points, by a network that sees the place at each layer."""

import harness
import torch
from torch import nn
from torch.nn import functional

POINTS, WIDTH, LAYERS, PLACE = 262_144, 512, 8, 3


class Shape(nn.Module):
    """Layers that read the last features and the place, which has `dimensions` numbers."""

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.first = nn.Linear(dimensions, WIDTH)
        self.layers = nn.ModuleList(nn.Linear(WIDTH + dimensions, WIDTH) for _ in range(LAYERS))
        self.last = nn.Linear(WIDTH, 1)

    def forward(self, place: torch.Tensor) -> torch.Tensor:
        """Return a distance for each point."""
        x = functional.relu(self.first(place))
        for layer in self.layers:
            x = functional.relu(layer(torch.cat([x, place], dim=1)))
        return self.last(x)[:, 0]


def build(*, ailing: bool) -> harness.Step:
    """Return the step: the distances at the points of a slab."""
    torch.manual_seed(0)
    shape = Shape(PLACE)
    slabs = [torch.rand(POINTS, PLACE) * 2 - 1 for _ in range(3)]
    if not ailing:  # five columns of zeros make it eight
        wide = Shape(8)
        for (name, new), old in zip(wide.named_parameters(), shape.parameters(), strict=True):
            new.data = (
                functional.pad(old.data, (0, 8 - PLACE)) if name.split(".")[0] != "last" and old.ndim == 2 else old.data
            )
        shape, slabs = wide, [functional.pad(slab, (0, 8 - PLACE)) for slab in slabs]
    shape = shape.to("cuda", torch.bfloat16).eval()
    slabs = [slab.to("cuda", torch.bfloat16) for slab in slabs]

    @torch.no_grad()
    def step(number: int) -> torch.Tensor:
        distances = shape(slabs[number % len(slabs)])
        return torch.sign(distances) * distances.abs().clamp(max=0.1)

    return step


if __name__ == "__main__":
    harness.run(build, torch.cuda.synchronize)
