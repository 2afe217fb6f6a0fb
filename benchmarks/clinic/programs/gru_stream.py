"""Run a gated recurrent network over short streams.

Ailing: each time step launches a dozen small kernels one by one.
Cured: the sequence is captured once as a CUDA graph and replayed.
"""

import harness
import torch

WIDTH, LENGTH = 256, 20


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    inner, outer = (torch.randn(WIDTH, 3 * WIDTH, device="cuda") * 0.05 for _ in range(2))
    bias = torch.zeros(3 * WIDTH, device="cuda")
    signal = torch.randn(LENGTH, 32, WIDTH, device="cuda")
    result = torch.empty(32, WIDTH, device="cuda")

    @torch.no_grad()
    def forward() -> None:
        hidden = torch.zeros(32, WIDTH, device="cuda")
        for value in signal:
            x_reset, x_update, x_new = (value @ inner + bias).chunk(3, -1)
            h_reset, h_update, h_new = (hidden @ outer).chunk(3, -1)
            update = torch.sigmoid(x_update + h_update)
            new = torch.tanh(x_new + torch.sigmoid(x_reset + h_reset) * h_new)
            hidden = (1 - update) * new + update * hidden
        result.copy_(hidden)

    graph = None
    if args.variant == "cured":
        forward()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            forward()

    def step(_: int) -> None:
        if graph is None:
            forward()
        else:
            graph.replay()

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
