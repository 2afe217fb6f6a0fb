"""Training of an encoder for long documents, whose attention has features of queries and keys instead of a softmax."""

import harness
import torch
from torch import nn
from torch.nn import functional

BATCH, LENGTH, HEADS, HEAD, LAYERS, WORDS = 4, 4096, 8, 64, 4, 16384
WIDTH = HEADS * HEAD


class Mixer(nn.Module):
    """Attention with the features elu(x) + 1: each word is a weighted mean of all words."""

    def __init__(self, *, ailing: bool) -> None:
        super().__init__()
        self.ailing = ailing
        self.inputs = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the mixed words."""
        q, k, v = self.inputs(x).view(BATCH, LENGTH, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4)
        q, k = functional.elu(q) + 1, (functional.elu(k) + 1) / LENGTH
        if self.ailing:
            weights = q @ k.transpose(-1, -2)
            mixed = (weights @ v) / weights.sum(-1, keepdim=True)
        else:
            mixed = (q @ (k.transpose(-1, -2) @ v)) / (q @ k.sum(-2).unsqueeze(-1))
        return self.output(mixed.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))


class Encoder(nn.Module):
    """Words, layers of mixing and of features, and the scores of masked words."""

    def __init__(self, *, ailing: bool) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.mixers = nn.ModuleList(Mixer(ailing=ailing) for _ in range(LAYERS))
        self.features = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
            for _ in range(LAYERS)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(LAYERS))
        self.scores = nn.Linear(WIDTH, WORDS)

    def forward(self, words: torch.Tensor, masked: torch.Tensor) -> torch.Tensor:
        """Return the scores of the masked words."""
        x = self.words(words)
        for mixer, norm, features in zip(self.mixers, self.norms, self.features, strict=True):
            x = x + mixer(norm(x))
            x = x + features(x)
        return self.scores(x.flatten(0, 1).index_select(0, masked))


def build(*, ailing: bool) -> harness.Step:
    """Return the step: one update of the encoder."""
    torch.manual_seed(0)
    encoder = Encoder(ailing=ailing).cuda().bfloat16()
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-4, fused=True)
    batches = []
    for _ in range(4):
        words = torch.randint(WORDS, (BATCH, LENGTH), device="cuda")
        masked = torch.randperm(BATCH * LENGTH, device="cuda")[:1024]
        batches.append((words, masked, words.flatten()[masked]))

    def step(number: int) -> torch.Tensor:
        words, masked, target = batches[number % len(batches)]
        optimizer.zero_grad()
        loss = functional.cross_entropy(encoder(words, masked), target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


if __name__ == "__main__":
    harness.run(build, torch.cuda.synchronize, 160)
