"""Training of a classifier of leaves: the light of the pictures is varied on the GPU before each update."""

import harness
import torch
from torch import nn
from torch.cuda import nvtx
from torch.nn import functional

BATCH, SIZE, KINDS = 96, 224, 200


def to_light(x: torch.Tensor, *, ailing: bool) -> torch.Tensor:
    """Return the amount of light of pixel values (sRGB)."""
    if not ailing:
        return torch.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)
    light = torch.empty_like(x)
    dark = x <= 0.04045
    light[dark] = x[dark] / 12.92
    light[~dark] = ((x[~dark] + 0.055) / 1.055) ** 2.4
    return light


def to_pixels(light: torch.Tensor, *, ailing: bool) -> torch.Tensor:
    """Return the pixel values (sRGB) of an amount of light."""
    if not ailing:
        return torch.where(light <= 0.0031308, light * 12.92, 1.055 * light.clamp(min=1e-6) ** (1 / 2.4) - 0.055)
    x = torch.empty_like(light)
    dark = light <= 0.0031308
    x[dark] = light[dark] * 12.92
    x[~dark] = 1.055 * light[~dark] ** (1 / 2.4) - 0.055
    return x


def layer(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    """Return a convolution with its normalization."""
    convolution = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


def build(*, ailing: bool) -> harness.Step:
    """Return the step: one update of the classifier."""
    torch.manual_seed(0)
    network = nn.Sequential(
        layer(3, 64, 2),
        layer(64, 64, 2),
        layer(64, 128, 1),
        layer(128, 128, 2),
        layer(128, 256, 1),
        layer(256, 256, 2),
        layer(256, 512, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(512, KINDS),
    )
    network = network.cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.02, momentum=0.9, fused=True)
    pictures = torch.randint(256, (4, BATCH, 3, SIZE, SIZE), dtype=torch.uint8, device="cuda")
    kinds = torch.randint(KINDS, (4, BATCH), device="cuda")

    def step(number: int) -> torch.Tensor:
        with nvtx.range("pictures"), torch.no_grad():
            light = to_light(pictures[number % 4].float() / 255, ailing=ailing)
            gain = torch.empty(BATCH, 3, 1, 1, device="cuda").uniform_(0.6, 1.4)
            x = to_pixels((light * gain).clamp(0, 1), ailing=ailing)
            x = ((x - 0.45) / 0.225).to(memory_format=torch.channels_last)
        with nvtx.range("network"), torch.autocast("cuda", torch.bfloat16):
            loss = functional.cross_entropy(network(x), kinds[number % 4])
        with nvtx.range("update"):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.detach()

    return step


if __name__ == "__main__":
    harness.run(build, torch.cuda.synchronize, 160)
