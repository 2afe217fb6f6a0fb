"""A transformer whose weights stay in host memory and come to the GPU block by block (inference over documents)."""

from collections.abc import Iterator

import harness
import torch
from torch.cuda import nvtx
from torch.nn import functional

DOCUMENTS, TOKENS, WIDTH, HEADS, BLOCKS = 28, 1024, 2048, 16, 4
SHAPES = ((3 * WIDTH, WIDTH), (WIDTH, WIDTH), (4 * WIDTH, WIDTH), (WIDTH, 4 * WIDTH))


def apply(x: torch.Tensor, weights: list[torch.Tensor]) -> torch.Tensor:
    """Return the output of a block."""
    mixed, out, up, down = weights
    q, k, v = (
        functional.linear(functional.layer_norm(x, (WIDTH,)), mixed)
        .view(DOCUMENTS, TOKENS, 3, HEADS, -1)
        .permute(2, 0, 3, 1, 4)
    )
    y = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)
    x = x + functional.linear(y, out)
    return x + functional.linear(functional.gelu(functional.linear(functional.layer_norm(x, (WIDTH,)), up)), down)


def upload(blocks: list[list[torch.Tensor]]) -> Iterator[list[torch.Tensor]]:
    """Yield the weights of each block on the GPU."""
    for block in blocks:
        yield [weight.to("cuda") for weight in block]


class Prefetch:
    """Yields the weights of each block on the GPU, while those of the next come on a stream of their own."""

    def __init__(self, blocks: list[list[torch.Tensor]]) -> None:
        self.blocks = [[weight.pin_memory() for weight in block] for block in blocks]
        self.buffers = [[torch.empty(shape, device="cuda", dtype=torch.bfloat16) for shape in SHAPES] for _ in range(2)]
        self.copies = torch.cuda.Stream()
        self.ready = [torch.cuda.Event() for _ in self.buffers]
        self.free = [torch.cuda.Event() for _ in self.buffers]

    def bring(self, index: int) -> None:
        """Copy a block's weights on the stream for copies."""
        with torch.cuda.stream(self.copies):
            self.copies.wait_event(self.free[index % 2])
            for place, weight in zip(self.buffers[index % 2], self.blocks[index], strict=True):
                place.copy_(weight, non_blocking=True)
            self.ready[index % 2].record(self.copies)

    def __iter__(self) -> Iterator[list[torch.Tensor]]:
        """Yield the weights of each block."""
        self.bring(0)
        for index in range(BLOCKS):
            if index + 1 < BLOCKS:
                self.bring(index + 1)
            torch.cuda.current_stream().wait_event(self.ready[index % 2])
            yield self.buffers[index % 2]
            self.free[index % 2].record()


def build(*, ailing: bool) -> harness.Step:
    """Return the step: the features of a batch of documents."""
    torch.manual_seed(0)
    blocks = [[(torch.randn(shape) * 0.02).bfloat16() for shape in SHAPES] for _ in range(BLOCKS)]
    batches = [torch.randn(DOCUMENTS, TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16) for _ in range(2)]
    prefetch = None if ailing else Prefetch(blocks)

    @torch.no_grad()
    def step(number: int) -> torch.Tensor:
        x = batches[number % len(batches)]
        for weights in prefetch or upload(blocks):
            with nvtx.range("block"):
                x = apply(x, weights)
        return x.mean(dim=1)

    return step


if __name__ == "__main__":
    harness.run(build, torch.cuda.synchronize)
