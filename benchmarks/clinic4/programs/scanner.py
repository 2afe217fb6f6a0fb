"""Scanner: features of slices by a small convolutional network, inference in half precision."""

import torch
from harness import arguments, measure
from torch import nn

BATCH, SIDE, WIDTH, DEPTH = 32, 128, 64, 8

args = arguments(__doc__)
torch.manual_seed(0)
torch.backends.cudnn.benchmark = True
blocks = [nn.Sequential(nn.Conv2d(WIDTH, WIDTH, 3, padding=1, bias=False), nn.BatchNorm2d(WIDTH)) for _ in range(DEPTH)]
network = nn.ModuleList(blocks).cuda().half().eval().to(memory_format=torch.channels_last)
layers = [torch.nn.utils.fuse_conv_bn_eval(*block) for block in network] if args.variant == "cured" else list(network)
slices = torch.randn(2, BATCH, WIDTH, SIDE, SIDE, device="cuda", dtype=torch.half)
slices = [x.contiguous(memory_format=torch.channels_last) for x in slices]


@torch.no_grad()
def step(index: int) -> torch.Tensor:
    x = slices[index % 2]
    for layer in layers:
        x = layer(x).relu_()
    return x.mean((2, 3))


measure(args, step, torch.cuda.synchronize)
