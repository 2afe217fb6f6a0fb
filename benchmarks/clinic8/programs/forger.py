"""Training of a generative adversarial network (64 x 64 pixels): a step of the critic, then one of the generator."""

import harness
import torch
from torch import nn
from torch.cuda import nvtx
from torch.nn import functional

PICTURES, LATENT = 128, 128


def rise(inputs: int, outputs: int) -> nn.Sequential:
    """Return a stage of the generator, which doubles height and width."""
    layers = [nn.ConvTranspose2d(inputs, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


def fall(inputs: int, outputs: int) -> nn.Sequential:
    """Return a stage of the critic, which halves height and width."""
    return nn.Sequential(nn.Conv2d(inputs, outputs, 4, 2, 1), nn.LeakyReLU(0.2))


def build(*, ailing: bool) -> harness.Step:
    """Return the step: an update of the critic and one of the generator."""
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    first = nn.Sequential(nn.ConvTranspose2d(LATENT, 1024, 4), nn.ReLU())
    last = nn.Sequential(nn.Conv2d(128, 3, 3, 1, 1), nn.Tanh())
    generator = nn.Sequential(first, rise(1024, 512), rise(512, 256), rise(256, 128), rise(128, 128), last)
    critic = nn.Sequential(fall(3, 64), fall(64, 128), fall(128, 256), fall(256, 512), nn.Conv2d(512, 1, 4))
    generator = generator.cuda().to(memory_format=torch.channels_last)
    critic = critic.cuda().to(memory_format=torch.channels_last)
    makers = torch.optim.Adam(generator.parameters(), lr=2e-4, fused=True)
    judges = torch.optim.Adam(critic.parameters(), lr=2e-4, fused=True)
    photos = [torch.randn(PICTURES, 3, 64, 64, device="cuda").tanh() for _ in range(3)]
    photos = [photo.to(memory_format=torch.channels_last) for photo in photos]
    latents = [torch.randn(PICTURES, LATENT, 1, 1, device="cuda") for _ in range(6)]

    def step(number: int) -> torch.Tensor:
        with nvtx.range("critic"):
            judges.zero_grad()
            pictures = generator(latents[2 * number % 6])
            if not ailing:
                pictures = pictures.detach()
            judged = (
                functional.softplus(critic(pictures)).mean() + functional.softplus(-critic(photos[number % 3])).mean()
            )
            judged.backward()
            judges.step()
        with nvtx.range("generator"):
            makers.zero_grad()
            loss = functional.softplus(-critic(generator(latents[(2 * number + 1) % 6]))).mean()
            loss.backward()
            makers.step()
        return torch.stack([judged.detach(), loss.detach()])

    return step


if __name__ == "__main__":
    harness.run(build, torch.cuda.synchronize)
