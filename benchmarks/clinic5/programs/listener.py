"""Transcribe speech as it arrives: two frames at a time through a recurrent encoder that keeps its state."""

from __future__ import annotations

import torch
from harness import arguments, measure
from torch import nn

STREAMS, FRAMES, MELS, WIDTH, LAYERS, PIECES = 16, 2, 80, 2048, 4, 1024


class Encoder(nn.Module):
    """A front layer, four recurrent layers, scores of word pieces."""

    def __init__(self) -> None:
        super().__init__()
        self.front = nn.Linear(MELS, WIDTH)
        self.recurrent = nn.LSTM(WIDTH, WIDTH, LAYERS, batch_first=True)
        self.scores = nn.Linear(WIDTH, PIECES)

    def forward(
        self, frames: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor]
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        with torch.cuda.nvtx.range("front"):
            hidden = torch.relu(self.front(frames))
        with torch.cuda.nvtx.range("recurrent"):
            hidden, state = self.recurrent(hidden, state)
        with torch.cuda.nvtx.range("scores"):
            return self.scores(hidden).log_softmax(-1), state


def main() -> None:
    args = arguments(__doc__)
    torch.manual_seed(6)
    with torch.device("meta"):
        encoder = Encoder()
    checkpoint = {
        name: 0.02 * torch.randn(tensor.shape, device="cuda") for name, tensor in encoder.state_dict().items()
    }
    encoder.load_state_dict(checkpoint, assign=True)  # without a second copy of the weights
    encoder.eval()
    if args.variant == "cured":
        encoder.recurrent.flatten_parameters()
    audio = torch.randn(32, STREAMS, FRAMES, MELS, device="cuda")
    zeros = torch.zeros(LAYERS, STREAMS, WIDTH, device="cuda")
    state = (zeros, zeros)
    pieces = torch.zeros(STREAMS, FRAMES, dtype=torch.int64, device="cuda")

    @torch.inference_mode()
    def step(index: int) -> None:
        nonlocal state
        scores, state = encoder(audio[index % len(audio)], state)
        pieces.copy_(scores.argmax(-1))

    measure(args, step, torch.cuda.synchronize)


main()
