"""Training of a small language model, whose weight matrices move along the orthogonal factor of their momentum."""

import harness
import torch
from torch import nn
from torch.nn import functional

BATCH, LENGTH, WIDTH, HEADS, LAYERS, WORDS = 8, 512, 512, 8, 10, 8192
RATE, MOMENTUM = 0.02, 0.95


class Block(nn.Module):
    """Causal attention and two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the words after the block."""
        y = functional.rms_norm(x, (WIDTH,))
        q, k, v = (layer(y).view(BATCH, LENGTH, HEADS, -1).transpose(1, 2) for layer in (self.q, self.k, self.v))
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(attended.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))
        return x + self.down(functional.relu(self.up(functional.rms_norm(x, (WIDTH,)))).square())


def orthogonal(matrix: torch.Tensor) -> torch.Tensor:
    """Return nearly the orthogonal factor of one matrix or of many, by five rounds of a polynomial."""
    tall = matrix.size(-2) > matrix.size(-1)
    x = matrix.mT if tall else matrix
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        square = x @ x.mT
        x = 3.4445 * x + (-4.775 * square + 2.0315 * (square @ square)) @ x
    return x.mT if tall else x


class Update:
    """The rule of the matrices: momentum, then its orthogonal factor."""

    def __init__(self, matrices: list[nn.Parameter], *, ailing: bool) -> None:
        self.ailing = ailing
        self.matrices = matrices
        self.momenta = [torch.zeros_like(matrix) for matrix in matrices]
        self.groups: dict[torch.Size, list[int]] = {}
        for i, matrix in enumerate(matrices):
            self.groups.setdefault(matrix.shape, []).append(i)

    @torch.no_grad()
    def step(self) -> None:
        """Update all matrices."""
        torch._foreach_lerp_(self.momenta, [matrix.grad for matrix in self.matrices], 1 - MOMENTUM)
        if self.ailing:
            for matrix, momentum in zip(self.matrices, self.momenta, strict=True):
                matrix.add_(orthogonal(momentum), alpha=-RATE)
            return
        for indices in self.groups.values():
            factors = orthogonal(torch.stack([self.momenta[i] for i in indices]))
            torch._foreach_add_([self.matrices[i] for i in indices], list(factors.unbind()), alpha=-RATE)


def build(*, ailing: bool) -> harness.Step:
    """Return the step: one update of the model."""
    torch.manual_seed(0)
    words = nn.Embedding(WORDS, WIDTH).cuda().bfloat16()
    blocks = nn.Sequential(*(Block() for _ in range(LAYERS))).cuda().bfloat16()
    update = Update(list(blocks.parameters()), ailing=ailing)
    word_optimizer = torch.optim.AdamW(words.parameters(), lr=1e-3, fused=True)
    texts = torch.randint(WORDS, (4, BATCH, LENGTH + 1), device="cuda")

    def step(number: int) -> torch.Tensor:
        text = texts[number % len(texts)]
        word_optimizer.zero_grad()
        blocks.zero_grad()
        x = functional.rms_norm(blocks(words(text[:, :-1])), (WIDTH,))
        loss = functional.cross_entropy((x @ words.weight.T).flatten(0, 1), text[:, 1:].flatten())
        loss.backward()
        update.step()
        word_optimizer.step()
        return loss.detach()

    return step


if __name__ == "__main__":
    harness.run(build, torch.cuda.synchronize, 120)
