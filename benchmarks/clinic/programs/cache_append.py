"""Append new keys and values of many requests to their caches and attend to them.

Ailing: a copy for each row: hundreds of copies of 2 KB from device to device.
Cured: one indexed write for all requests.
"""

import harness
import torch

REQUESTS, CAPACITY, WIDTH = 64, 256, 1024


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    keys, values = (torch.zeros(REQUESTS, CAPACITY, WIDTH, device="cuda", dtype=torch.half) for _ in range(2))
    x = torch.randn(REQUESTS, WIDTH, device="cuda", dtype=torch.half)
    project = torch.randn(WIDTH, 3 * WIDTH, device="cuda", dtype=torch.half) * 0.02
    rows = torch.arange(REQUESTS, device="cuda")
    lengths = [index * 37 % 200 for index in range(REQUESTS)]
    ends = torch.tensor(lengths, device="cuda")

    @torch.no_grad()
    def step(_: int) -> torch.Tensor:
        query, key, value = ((x @ project).view(REQUESTS, 3, WIDTH).transpose(0, 1).contiguous()).unbind()
        if args.variant == "cured":
            keys[rows, ends] = key
            values[rows, ends] = value
        else:
            for request, end in enumerate(lengths):
                keys[request, end].copy_(key[request])
                values[request, end].copy_(value[request])
        weights = torch.bmm(keys, query[:, :, None]).softmax(1)
        return torch.bmm(weights.transpose(1, 2), values)

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
