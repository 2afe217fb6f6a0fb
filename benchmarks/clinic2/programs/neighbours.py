"""Search: the sixteen nearest vectors of a catalogue for each query of a batch."""

import torch
from harness import arguments, measure

QUERIES, VECTORS, WIDTH, NEAREST = 2048, 32768, 128, 16

args = arguments(__doc__)
torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
catalogue = torch.randn(VECTORS, WIDTH, device="cuda")
norms = catalogue.square().sum(1)
queries = torch.randn(4, QUERIES, WIDTH, device="cuda")
labels = torch.randint(0, 100, (VECTORS,), device="cuda")


def nearest(distances: torch.Tensor) -> torch.Tensor:
    if args.variant == "cured":
        return distances.topk(NEAREST, largest=False).indices
    return distances.argsort(dim=1)[:, :NEAREST]


def step(index: int) -> torch.Tensor:
    torch.cuda.nvtx.range_push("search")
    distances = torch.addmm(norms, queries[index % 4], catalogue.T, alpha=-2)
    votes = labels[nearest(distances)].mode(dim=1).values
    torch.cuda.nvtx.range_pop()
    return votes


measure(args, step, torch.cuda.synchronize)
