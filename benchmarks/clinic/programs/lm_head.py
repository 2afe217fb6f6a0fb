"""Score tokens over a vocabulary of 50257 words in BF16.

Ailing: 50257 is odd, so the products with the vocabulary cannot use the fast kernels.
Cured: the vocabulary is padded to 50304, a multiple of 64.
"""

import harness
import torch


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    words = 50304 if args.variant == "cured" else 50257
    head = (torch.randn(words, 1024, device="cuda") * 0.02).bfloat16()
    hidden = torch.randn(8192, 1024, device="cuda", dtype=torch.bfloat16)

    @torch.no_grad()
    def step(_: int) -> torch.Tensor:
        logits = hidden @ head.T
        return torch.relu(hidden + logits @ head)

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
