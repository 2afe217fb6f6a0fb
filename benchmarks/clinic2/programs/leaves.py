"""Photos of leaves: a convolutional network in half precision names the disease on a batch of pictures."""

import torch
from harness import arguments, measure
from torch import nn

BATCH, SIZE = 64, 112

args = arguments(__doc__)
torch.manual_seed(0)
torch.backends.cudnn.benchmark = True


def block(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.ReLU(inplace=True))


model = nn.Sequential(
    block(8, 64, 1),
    block(64, 128, 1),
    block(128, 128, 2),
    block(128, 256, 1),
    block(256, 256, 2),
    block(256, 256, 1),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(256, 38),
)
model = model.cuda().half().eval()
photos = torch.rand(BATCH, 8, SIZE, SIZE, device="cuda", dtype=torch.half)
if args.variant == "cured":
    model = model.to(memory_format=torch.channels_last)
    photos = photos.to(memory_format=torch.channels_last)


@torch.no_grad()
def step(_: int) -> torch.Tensor:
    return model(photos).argmax(1)


measure(args, step, torch.cuda.synchronize)
