"""Sample etchings from a diffusion transformer with classifier-free guidance."""

from __future__ import annotations

import torch
from harness import arguments, measure
from torch import nn
from torch.cuda import nvtx
from torch.nn import functional

DEPTH, WIDTH, HEADS, TOKENS, STEPS, GUIDANCE = 20, 768, 12, 256, 50, 4.0


class Block(nn.Module):
    """Attention and a small network, both set by a state."""

    def __init__(self) -> None:
        super().__init__()
        self.shift, self.inputs = nn.Linear(WIDTH, 6 * WIDTH), nn.Linear(WIDTH, 3 * WIDTH)
        self.output, self.up, self.down = (
            nn.Linear(WIDTH, WIDTH),
            nn.Linear(WIDTH, 4 * WIDTH),
            nn.Linear(4 * WIDTH, WIDTH),
        )

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        shift, scale, gate, shift2, scale2, gate2 = self.shift(state).unsqueeze(1).chunk(6, dim=-1)
        y = functional.layer_norm(x, (WIDTH,)) * (1 + scale) + shift
        rows = self.inputs(y).view(x.shape[0], TOKENS, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(*rows.unbind(0)).transpose(1, 2).reshape(x.shape)
        x = x + gate * self.output(y)
        y = functional.layer_norm(x, (WIDTH,)) * (1 + scale2) + shift2
        return x + gate2 * self.down(functional.gelu(self.up(y)))


def main() -> None:
    args = arguments(__doc__)
    torch.manual_seed(0)
    blocks = nn.ModuleList(Block() for _ in range(DEPTH)).cuda().bfloat16().eval()
    motif, nothing = torch.randn(2, 1, WIDTH, device="cuda", dtype=torch.bfloat16).unbind(0)
    times = torch.randn(STEPS, 1, WIDTH, device="cuda", dtype=torch.bfloat16)
    factors = torch.linspace(0.99, 0.5, STEPS).tolist()
    image = torch.randn(1, TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16)

    def predict(x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        for block in blocks:
            x = block(x, state)
        return x

    def noise(time: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if args.variant == "cured":
            guided, free = predict(image.expand(2, -1, -1), torch.cat((motif, nothing)) + time).chunk(2)
            return guided, free
        return predict(image, motif + time), predict(image, nothing + time)

    @torch.inference_mode()
    def step(index: int) -> None:
        nonlocal image
        turn = index % STEPS
        with nvtx.range("denoise"):
            guided, free = noise(times[turn])
            guess = free + GUIDANCE * (guided - free)
            image = functional.layer_norm(factors[turn] * image + (1 - factors[turn]) * guess, (WIDTH,))

    measure(args, step, torch.cuda.synchronize)


main()
