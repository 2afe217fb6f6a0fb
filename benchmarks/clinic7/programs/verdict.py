"""Ranking of documents by a cross-encoder: a transformer reads the question and the document together."""

import harness
import torch
from torch import nn
from torch.nn import functional as f

BATCH, LENGTH, WIDTH, HEADS, LAYERS, WORDS = 8, 1024, 768, 12, 12, 30000


class Layer(nn.Module):
    """A transformer layer with the normalization first."""

    def __init__(self, *, wide: bool) -> None:
        super().__init__()
        self.wide = wide
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        """Return the attention's values, in FP32 if the layer is wide."""
        qkv = self.qkv(x).view(*x.shape[:2], 3, HEADS, WIDTH // HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        if self.wide:  # "softmax needs the range of FP32"
            with torch.autocast("cuda", enabled=False):
                y = f.scaled_dot_product_attention(q.float(), k.float(), v.float())
            y = y.to(x.dtype)
        else:
            y = f.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).flatten(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer's output."""
        x = x + self.attend(self.norm_1(x))
        return x + self.down(f.gelu(self.up(self.norm_2(x))))


class Model(nn.Module):
    """A score for each pair of question and document."""

    def __init__(self, *, wide: bool) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.positions = nn.Parameter(torch.zeros(LENGTH, WIDTH))
        self.layers = nn.Sequential(*(Layer(wide=wide) for _ in range(LAYERS)))
        self.score = nn.Linear(WIDTH, 1)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the scores."""
        return self.score(self.layers(self.words(tokens) + self.positions)[:, 0])


def build(*, ailing: bool) -> harness.Step:
    """Return the step: the scores of eight documents of 1024 tokens."""
    torch.manual_seed(0)
    model = Model(wide=ailing).cuda().bfloat16().eval()
    batches = [torch.randint(WORDS, (BATCH, LENGTH), device="cuda") for _ in range(4)]

    @torch.inference_mode()
    def step(number: int) -> None:
        model(batches[number % len(batches)])

    return step


if __name__ == "__main__":
    harness.run(build, torch.cuda.synchronize)
