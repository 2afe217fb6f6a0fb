"""Click prediction (DLRM): 96 categorical features of four values each, and 13 numbers."""

import itertools

import harness
import torch
from torch import nn

FEATURES, ROWS, WIDTH, BATCH, VALUES = 96, 20000, 64, 8192, 4


def make_layers(*widths: int) -> nn.Sequential:
    """Return linear layers with ReLU between them."""
    layers: list[nn.Module] = []
    for a, b in itertools.pairwise(widths):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Separate(nn.Module):
    """One table for each feature."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(ROWS, WIDTH, mode="sum") for _ in range(FEATURES))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the sums of each feature's rows, of shape (batch, features, width)."""
        return torch.stack([table(ids[:, i]) for i, table in enumerate(self.tables)], dim=1)


class Joined(nn.Module):
    """The tables of all features one below the other."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.EmbeddingBag(FEATURES * ROWS, WIDTH, mode="sum")
        self.register_buffer("first", (torch.arange(FEATURES) * ROWS)[None, :, None])

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the sums of each feature's rows, of shape (batch, features, width)."""
        return self.table((ids + self.first).view(-1, VALUES)).view(-1, FEATURES, WIDTH)


class Model(nn.Module):
    """Bottom layers, embeddings, products of all pairs of features, top layers."""

    def __init__(self, embeddings: nn.Module) -> None:
        super().__init__()
        self.embeddings = embeddings
        self.bottom = make_layers(13, 512, 256, WIDTH)
        pairs = FEATURES * (FEATURES + 1) // 2
        self.top = make_layers(pairs + WIDTH, 1024, 512, 1)
        rows, columns = torch.tril_indices(FEATURES + 1, FEATURES + 1, -1)
        self.register_buffer("positions", rows * (FEATURES + 1) + columns)

    def forward(self, numbers: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """Return the probability of a click."""
        dense = self.bottom(numbers)
        vectors = torch.cat([dense[:, None], self.embeddings(ids)], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)
        return torch.sigmoid(self.top(torch.cat([dense, products[:, self.positions]], 1)))


def build(*, ailing: bool) -> harness.Step:
    """Return the step: the scores of a batch."""
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    model = Model(Separate() if ailing else Joined()).cuda().eval()
    batches = [
        (
            torch.randn(BATCH, 13, device="cuda"),
            torch.randint(ROWS, (BATCH, FEATURES, VALUES), device="cuda"),
        )
        for _ in range(4)
    ]

    @torch.inference_mode()
    def step(number: int) -> None:
        model(*batches[number % len(batches)])

    return step


if __name__ == "__main__":
    harness.run(build, torch.cuda.synchronize)
