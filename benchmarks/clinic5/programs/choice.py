"""Draw the next tokens of 256 sequences: project to the vocabulary, discourage repeats, cut the tail, draw."""

from __future__ import annotations

import torch
from harness import arguments, measure

SEQUENCES, WIDTH, VOCABULARY, PAST, CANDIDATES, MASS = 256, 2048, 128_256, 64, 64, 0.9


def truncate(probabilities: torch.Tensor) -> torch.Tensor:
    """Keep the most probable tokens that together hold the wanted mass."""
    before = probabilities.cumsum(dim=-1) - probabilities
    return probabilities.masked_fill(before > MASS, 0)


def draw_from_all(logits: torch.Tensor) -> torch.Tensor:
    """Sort the vocabulary."""
    ordered, tokens = torch.sort(logits, dim=-1, descending=True)
    picked = torch.multinomial(truncate(ordered.softmax(dim=-1)), 1)
    return tokens.gather(1, picked)


def draw_from_best(logits: torch.Tensor) -> torch.Tensor:
    """Order the best few only, as most servers do."""
    best, tokens = torch.topk(logits, CANDIDATES, dim=-1)
    picked = torch.multinomial(truncate(best.softmax(dim=-1)), 1)
    return tokens.gather(1, picked)


def main() -> None:
    args = arguments(__doc__)
    torch.manual_seed(10)
    head = torch.randn(VOCABULARY, WIDTH, device="cuda", dtype=torch.bfloat16) / 16
    hidden = torch.randn(8, SEQUENCES, WIDTH, device="cuda", dtype=torch.bfloat16)
    past = torch.randint(VOCABULARY, (SEQUENCES, PAST), device="cuda")
    draw = draw_from_best if args.variant == "cured" else draw_from_all

    @torch.inference_mode()
    def step(index: int) -> None:
        with torch.cuda.nvtx.range("project"):
            logits = (hidden[index % len(hidden)] @ head.T).float()
        with torch.cuda.nvtx.range("penalty"):
            repeated = logits.gather(1, past)
            logits.scatter_(1, past, torch.where(repeated > 0, repeated / 1.2, repeated * 1.2))
        with torch.cuda.nvtx.range("draw"):
            tokens = draw(logits)
        past[:, index % PAST] = tokens[:, 0]

    measure(args, step, torch.cuda.synchronize)


main()
