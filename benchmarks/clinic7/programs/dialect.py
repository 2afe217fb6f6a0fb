"""Training of a speech recognizer with the CTC loss: convolutions, a transformer, letters."""

import harness
import torch
from torch import nn
from torch.cuda import nvtx
from torch.nn import functional as f

BATCH, FRAMES, BANDS, WIDTH, HEADS, LAYERS, LETTERS, SPOKEN = 16, 800, 80, 512, 8, 4, 64, 60


class Layer(nn.Module):
    """A transformer layer with a convolution over time."""

    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2, self.norm_3 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.over_time = nn.Conv1d(WIDTH, WIDTH, 15, padding=7, groups=WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer's output."""
        q, k, v = self.qkv(self.norm_1(x)).view(*x.shape[:2], 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        x = x + self.out(f.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        x = x + f.silu(self.over_time(self.norm_2(x).transpose(1, 2))).transpose(1, 2)
        return x + self.down(f.silu(self.up(self.norm_3(x))))


class Recognizer(nn.Module):
    """Log probabilities of letters, four frames each."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(BANDS, WIDTH, 3, stride=2, padding=1)
        self.second = nn.Conv1d(WIDTH, WIDTH, 3, stride=2, padding=1)
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.letters = nn.Linear(WIDTH, LETTERS)

    def forward(self, sound: torch.Tensor) -> torch.Tensor:
        """Return log probabilities of shape (time, batch, letters)."""
        x = f.silu(self.second(f.silu(self.first(sound)))).transpose(1, 2)
        return self.letters(self.layers(x)).log_softmax(-1).transpose(0, 1)


def build(*, ailing: bool) -> harness.Step:
    """Return the step: forward, backward and the optimizer, for 16 utterances."""
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    if ailing:
        torch.autograd.set_detect_anomaly(mode=True)
    model = Recognizer().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    sounds = [torch.randn(BATCH, BANDS, FRAMES, device="cuda") for _ in range(4)]
    texts = torch.randint(1, LETTERS, (BATCH, SPOKEN), device="cuda")
    lengths, spoken = [FRAMES // 4] * BATCH, [SPOKEN] * BATCH

    def step(number: int) -> None:
        with nvtx.range("train"):
            with nvtx.range("forward"):
                log_p = model(sounds[number % len(sounds)])
                loss = f.ctc_loss(log_p, texts, lengths, spoken, zero_infinity=True)
            with nvtx.range("backward"):
                loss.backward()
            with nvtx.range("optimizer"):
                optimizer.step()
                optimizer.zero_grad()

    return step


if __name__ == "__main__":
    harness.run(build, torch.cuda.synchronize)
