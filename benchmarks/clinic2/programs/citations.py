"""Graph network: papers gather the features of the papers that they cite, in two layers."""

import torch
from harness import arguments, measure

PAPERS, EDGES, WIDTH = 100_000, 2_000_000, 128

args = arguments(__doc__)
torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
source = torch.randint(0, PAPERS, (EDGES,), device="cuda")
target = torch.randint(0, PAPERS, (EDGES,), device="cuda")
weight = torch.rand(EDGES, device="cuda")
features = torch.randn(PAPERS, WIDTH, device="cuda")
layers = [torch.randn(WIDTH, WIDTH, device="cuda") / WIDTH**0.5 for _ in range(2)]

order = target.argsort()
starts = torch.zeros(PAPERS + 1, dtype=torch.int64, device="cuda")
starts[1:] = torch.bincount(target, minlength=PAPERS).cumsum(0)
graph = torch.sparse_csr_tensor(starts.int(), source[order].int(), weight[order], (PAPERS, PAPERS), device="cuda")


def gather(nodes: torch.Tensor) -> torch.Tensor:
    if args.variant == "cured":
        return graph @ nodes
    messages = nodes[source] * weight[:, None]
    return torch.zeros_like(nodes).index_add_(0, target, messages)


@torch.no_grad()
def step(_: int) -> torch.Tensor:
    nodes = features
    for matrix in layers:
        nodes = torch.relu(gather(nodes) @ matrix) * 0.1
    return nodes


measure(args, step, torch.cuda.synchronize)
