"""Train a variational autoencoder with a ladder of eight latent layers."""

from __future__ import annotations

import torch
from harness import arguments, measure
from torch import nn
from torch.distributions import Bernoulli, Distribution, Normal, kl_divergence
from torch.nn import functional

BATCH, PIXELS, HIDDEN, LATENT, RUNGS = 256, 784, 512, 32, 8


class Rung(nn.Module):
    """A latent layer with its posterior and its prior."""

    def __init__(self) -> None:
        super().__init__()
        self.posterior = nn.Linear(2 * HIDDEN, 2 * LATENT)
        self.prior = nn.Linear(HIDDEN, 2 * LATENT)
        self.after = nn.Linear(LATENT, HIDDEN)

    @staticmethod
    def normal(values: torch.Tensor) -> Normal:
        mean, spread = values.chunk(2, dim=1)
        return Normal(mean, functional.softplus(spread) + 1e-4)

    def forward(self, bottom: torch.Tensor, top: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        posterior = self.normal(self.posterior(torch.cat([bottom, top], dim=1)))
        prior = self.normal(self.prior(top))
        latent = posterior.rsample()
        return top + torch.tanh(self.after(latent)), kl_divergence(posterior, prior).sum(dim=1)


class Ladder(nn.Module):
    """An encoder, the rungs, a decoder."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(PIXELS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU())
        self.rungs = nn.ModuleList(Rung() for _ in range(RUNGS))
        self.decoder = nn.Sequential(nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, PIXELS))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        bottom = self.encoder(images)
        top, cost = torch.zeros_like(bottom), torch.zeros(BATCH, device=images.device)
        for rung in self.rungs:
            top, divergence = rung(bottom, top)
            cost = cost + divergence
        return (cost - Bernoulli(logits=self.decoder(top)).log_prob(images).sum(dim=1)).mean()


def main() -> None:
    args = arguments(__doc__)
    torch.manual_seed(12)
    Distribution.set_default_validate_args(args.variant == "ailing")
    model = Ladder().to("cuda")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    images = torch.rand(16, BATCH, PIXELS, device="cuda").round()

    def step(index: int) -> None:
        with torch.cuda.nvtx.range("forward"):
            loss = model(images[index % len(images)])
        with torch.cuda.nvtx.range("backward"):
            optimizer.zero_grad()
            loss.backward()
        with torch.cuda.nvtx.range("optimizer"):
            optimizer.step()

    measure(args, step, torch.cuda.synchronize)


main()
