"""Catalogue: vectors of a million articles, learned from pairs that were bought together."""

import torch
from harness import arguments, measure
from torch import nn

ARTICLES, WIDTH, PAIRS = 1_000_000, 128, 8192

args = arguments(__doc__)
torch.manual_seed(0)
cured = args.variant == "cured"
table = nn.Embedding(ARTICLES, WIDTH, sparse=cured, device="cuda")
optimizer = torch.optim.SparseAdam(table.parameters()) if cured else torch.optim.Adam(table.parameters(), fused=True)
pairs = torch.randint(0, ARTICLES, (4, 2, PAIRS), device="cuda")


def step(index: int) -> None:
    left, right = table(pairs[index % 4])
    loss = nn.functional.softplus(-(left * right).sum(1)).mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()


measure(args, step, torch.cuda.synchronize)
