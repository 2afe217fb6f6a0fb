"""The loss of a language model over a large vocabulary: a Triton kernel for the loss and its gradient in one pass."""

import harness
import torch
import triton
import triton.language as tl
from torch.cuda import nvtx

TOKENS, WIDTH, WORDS = 8192, 512, 32768


@triton.jit
def cross_entropy(logits, targets, losses, scale, words, BLOCK: tl.constexpr):
    """Write a row's loss, and its gradient over its logits."""
    row = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, BLOCK)
    mask = place < words
    x = tl.load(logits + row * words + place, mask=mask, other=-float("inf")).to(tl.float32)
    target = tl.load(targets + row)
    top = tl.max(x, 0)
    e = tl.exp(x - top)
    total = tl.sum(e, 0)
    target_logit = tl.sum(tl.where(place == target, x, 0.0), 0)
    tl.store(losses + row, tl.log(total) + top - target_logit)
    gradient = (e / total - tl.where(place == target, 1.0, 0.0)) * scale
    tl.store(logits + row * words + place, gradient.to(tl.bfloat16), mask=mask)


def build(*, ailing: bool) -> harness.Step:
    """Return the step: logits, loss, and the gradients of the hidden states and the weights."""
    torch.manual_seed(0)
    hidden = torch.randn(TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16)
    weights = torch.randn(WORDS, WIDTH, device="cuda", dtype=torch.bfloat16) / WIDTH**0.5
    targets = torch.randint(WORDS, (TOKENS,), device="cuda")
    losses = torch.empty(TOKENS, device="cuda")
    options = {} if ailing else {"num_warps": 32}  # Triton's default is four warps for a block

    @torch.no_grad()
    def step(_: int) -> None:
        with nvtx.range("loss"):
            logits = hidden @ weights.T
            cross_entropy[(TOKENS,)](logits, targets, losses, 1 / TOKENS, WORDS, BLOCK=WORDS, **options)
            losses.mean()
        with nvtx.range("gradients"):
            torch.mm(logits, weights)
            torch.mm(logits.T, hidden)

    return step


if __name__ == "__main__":
    harness.run(build, torch.cuda.synchronize)
