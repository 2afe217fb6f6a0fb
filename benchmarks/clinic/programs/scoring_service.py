"""Score a queue of 16 requests with a perceptron; a step is all of the queue.

Ailing: each request is a batch of one.
Cured: the requests that wait are scored as one batch.
"""

import harness
import torch
from torch import nn


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(2048, 8192),
        nn.ReLU(),
        nn.Linear(8192, 8192),
        nn.ReLU(),
        nn.Linear(8192, 1024),
    )
    model = model.cuda().half().eval()
    queue = torch.randn(16, 2048, device="cuda", dtype=torch.half)

    @torch.no_grad()
    def step(_: int) -> list[torch.Tensor]:
        if args.variant == "cured":
            return [model(queue)]
        return [model(request[None]) for request in queue]

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
