"""Inspection of woven fabric: a convolutional network over pictures, learned filters, and a map of faults."""

import harness
import torch
from torch import nn
from torch.nn import functional

PICTURES, SIZE, CHANNELS, LAYERS = 4, 512, 64, 5


class Filters(nn.Module):
    """Filters of 3 x 3 pixels, a bias, and a rectifier, written as a product with the neighbors of each pixel."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, 9 * inputs) / (9 * inputs) ** 0.5)
        self.bias = nn.Parameter(torch.zeros(outputs, 1))

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Return the filtered pictures."""
        neighbors = functional.unfold(pictures, 3, padding=1)
        return functional.relu(self.weight @ neighbors + self.bias).view(len(pictures), -1, *pictures.shape[2:])


def build(*, ailing: bool) -> harness.Step:
    """Return the step: the faults in a batch of pictures."""
    torch.manual_seed(0)
    layers = [layer for _ in range(LAYERS) for layer in (nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1), nn.ReLU())]
    filters = Filters(CHANNELS, CHANNELS)
    webs = [torch.randn(PICTURES, CHANNELS, SIZE, SIZE, device="cuda", dtype=torch.bfloat16) for _ in range(3)]
    webs = [web.to(memory_format=torch.channels_last) for web in webs]
    if ailing:
        model = nn.Sequential(*layers, filters)
    else:
        convolution = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1)
        convolution.weight.data = filters.weight.data.view_as(convolution.weight)
        convolution.bias.data = filters.bias.data[:, 0]
        model = nn.Sequential(*layers, convolution, nn.ReLU())
    model = model.to("cuda", torch.bfloat16).to(memory_format=torch.channels_last)

    @torch.no_grad()
    def step(number: int) -> torch.Tensor:
        features = model(webs[number % len(webs)])
        return functional.avg_pool2d(features.float().pow(2).mean(dim=1, keepdim=True), 16)

    return step


if __name__ == "__main__":
    harness.run(build, torch.cuda.synchronize)
