"""Ledger: amounts of many bookings, added to the vectors of their accounts."""

import torch
from harness import arguments, measure

BOOKINGS, ACCOUNTS, WIDTH = 1 << 20, 200_000, 32

args = arguments(__doc__)
torch.manual_seed(0)
balances = torch.zeros(ACCOUNTS, WIDTH, device="cuda")
accounts = torch.randint(0, ACCOUNTS, (4, BOOKINGS), device="cuda")
amounts = torch.randn(BOOKINGS, WIDTH, device="cuda")


def step(index: int) -> None:
    if args.variant == "cured":
        balances.index_add_(0, accounts[index % 4], amounts)
    else:
        balances.index_put_((accounts[index % 4],), amounts, accumulate=True)


measure(args, step, torch.cuda.synchronize)
