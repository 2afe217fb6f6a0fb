"""Train a language model's last layers over a vocabulary of 65,536 words with smoothed labels."""

from __future__ import annotations

import torch
from harness import arguments, measure
from torch import nn
from torch.nn import functional

VOCABULARY, WIDTH, TOKENS, SMOOTHING = 65_536, 1024, 4096, 0.1


class Trunk(nn.Module):
    """Two residual layers and the projection to the vocabulary."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
            for _ in range(2)
        )
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        hidden = self.embedding(words)
        for layer in self.layers:
            hidden = hidden + layer(hidden)
        return self.head(hidden)


def loss_by_distribution(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Compare with the smoothed distribution of each token."""
    truth = functional.one_hot(labels, VOCABULARY).float()
    truth = truth * (1 - SMOOTHING) + SMOOTHING / VOCABULARY
    return -(truth * functional.log_softmax(logits, dim=-1)).sum(dim=-1).mean()


def loss_by_index(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Let the library smooth: it needs the label's place only."""
    return functional.cross_entropy(logits, labels, label_smoothing=SMOOTHING)


def main() -> None:
    args = arguments(__doc__)
    torch.manual_seed(1)
    model = Trunk().to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)
    words = torch.randint(VOCABULARY, (8, TOKENS + 1), device="cuda")
    criterion = loss_by_index if args.variant == "cured" else loss_by_distribution

    def step(index: int) -> None:
        batch = words[index % len(words)]
        with torch.cuda.nvtx.range("forward"), torch.autocast("cuda", torch.bfloat16):
            logits = model(batch[:-1])
        with torch.cuda.nvtx.range("loss"):
            loss = criterion(logits.float(), batch[1:])
        with torch.cuda.nvtx.range("backward"):
            loss.backward()
        with torch.cuda.nvtx.range("optimizer"):
            optimizer.step()
            optimizer.zero_grad()

    measure(args, step, torch.cuda.synchronize)


main()
