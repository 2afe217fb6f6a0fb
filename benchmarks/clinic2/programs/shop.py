"""Shop: scores of customers for offers, from the article that each customer saw last."""

import torch
from harness import arguments, measure
from torch import nn
from torch.nn import functional as F  # noqa: N812

CUSTOMERS, ARTICLES, WIDTH = 8192, 20000, 256

args = arguments(__doc__)
torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
articles = nn.Parameter(torch.randn(ARTICLES, WIDTH, device="cuda"))
tower = nn.Sequential(nn.Linear(WIDTH, 512), nn.ReLU(), nn.Linear(512, 64)).cuda()
last = torch.randint(0, ARTICLES, (4, CUSTOMERS), device="cuda")


def represent(article_ids: torch.Tensor) -> torch.Tensor:
    if args.variant == "cured":
        return F.embedding(article_ids, articles)
    return F.one_hot(article_ids, ARTICLES).float() @ articles


@torch.no_grad()
def step(index: int) -> torch.Tensor:
    return tower(represent(last[index % 4])).softmax(1)


measure(args, step, torch.cuda.synchronize)
