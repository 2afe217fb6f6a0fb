"""Pictures of a street camera: each batch is normalized and goes through a small network on the GPU."""

import torch
from harness import arguments, measure
from torch import nn

BATCH, HEIGHT, WIDTH = 16, 480, 640

args = arguments(__doc__)
torch.manual_seed(0)
torch.set_num_threads(4)
frames = [torch.randint(0, 256, (BATCH, 3, HEIGHT, WIDTH), dtype=torch.uint8) for _ in range(4)]
mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
deviation = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
model = nn.Sequential(
    nn.Conv2d(3, 32, 7, 4, 3), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), nn.Conv2d(64, 20, 1)
).to("cuda", torch.half, memory_format=torch.channels_last)
if args.variant == "cured":
    frames = [frame.pin_memory() for frame in frames]
    mean, deviation = mean.cuda(), deviation.cuda()


def load(index: int) -> torch.Tensor:
    frame = frames[index % 4]
    if args.variant == "cured":
        frame = frame.to("cuda", non_blocking=True)
    return ((frame.float() / 255 - mean) / deviation).cuda()


@torch.no_grad()
def step(index: int) -> torch.Tensor:
    torch.cuda.nvtx.range_push("batch")
    pictures = load(index).half().contiguous(memory_format=torch.channels_last)
    result = model(pictures).argmax(1)
    torch.cuda.nvtx.range_pop()
    return result


measure(args, step, torch.cuda.synchronize)
