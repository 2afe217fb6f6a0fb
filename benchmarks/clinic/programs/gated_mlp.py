"""Run a gated perceptron whose activation is written with tensor operations.

Ailing: the activation, scale and clamp are a chain of nine elementwise kernels over a large tensor.
Cured: torch.compile makes one kernel of the chain.
"""

import harness
import torch


def activate(hidden: torch.Tensor, gate: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return the tanh GELU of the gate times the hidden state, scaled and clamped."""
    cubic = gate + 0.044715 * gate * gate * gate
    smooth = 0.5 * gate * (1 + torch.tanh(0.79788456 * cubic))
    return (smooth * hidden * scale).clamp(-30, 30)


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    options = {"device": "cuda", "dtype": torch.bfloat16}
    x = torch.randn(8192, 1024, **options)
    up, gate, down = (torch.randn(1024, 4096, **options) * 0.02 for _ in range(3))
    scale = torch.rand(4096, **options)
    function = torch.compile(activate) if args.variant == "cured" else activate

    @torch.no_grad()
    def step(_: int) -> torch.Tensor:
        y = x
        for _layer in range(4):
            y = y + function(y @ up, y @ gate, scale) @ down.T
        return y

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
