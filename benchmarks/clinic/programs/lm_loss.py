"""Train the head of a language model with a large vocabulary.

Ailing: the cross-entropy is written out in FP32: seven passes over the logits forward, more backward.
Cured: the loss function goes through torch.compile.
"""

import harness
import torch


def nll(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the mean negative log-likelihood."""
    logits = logits.float()
    shifted = logits - logits.amax(-1, keepdim=True)
    normalizer = shifted.exp().sum(-1, keepdim=True).log()
    picked = (shifted - normalizer).gather(1, targets[:, None])
    return -picked.mean()


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    loss_function = torch.compile(nll) if args.variant == "cured" else nll
    hidden = torch.randn(4096, 1024, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    head = (torch.randn(50304, 1024, device="cuda") * 0.02).bfloat16().requires_grad_()
    targets = torch.randint(0, 50304, (4096,), device="cuda")

    def step(_: int) -> None:
        loss_function(hidden @ head.T, targets).backward()
        hidden.grad = head.grad = None

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
