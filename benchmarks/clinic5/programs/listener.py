"""Transcribe recorded speech by a recurrent encoder."""

from __future__ import annotations

import torch
from harness import arguments, measure
from torch import nn

SPEAKERS, FRAMES, MELS, WIDTH, LAYERS, PIECES = 32, 24, 80, 512, 2, 1024


class Encoder(nn.Module):
    """A front layer, two recurrent layers, scores of word pieces."""

    def __init__(self, *, is_cured: bool) -> None:
        super().__init__()
        self.is_cured = is_cured
        self.front = nn.Linear(MELS, WIDTH)
        self.recurrent = nn.LSTM(WIDTH, WIDTH, LAYERS, batch_first=True)
        self.scores = nn.Linear(WIDTH, PIECES)

    def listen(self, hidden: torch.Tensor) -> torch.Tensor:
        if self.is_cured:
            return self.recurrent(hidden)[0]
        heard, state = [], None
        for frame in range(FRAMES):  # as the live version does
            output, state = self.recurrent(hidden[:, frame : frame + 1], state)
            heard.append(output)
        return torch.cat(heard, dim=1)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        with torch.cuda.nvtx.range("front"):
            hidden = torch.relu(self.front(frames))
        with torch.cuda.nvtx.range("recurrent"):
            hidden = self.listen(hidden)
        with torch.cuda.nvtx.range("scores"):
            return self.scores(hidden).log_softmax(-1)


def main() -> None:
    args = arguments(__doc__)
    torch.manual_seed(6)
    encoder = Encoder(is_cured=args.variant == "cured").to("cuda").eval()
    audio = torch.randn(16, SPEAKERS, FRAMES, MELS, device="cuda")
    pieces = torch.zeros(SPEAKERS, FRAMES, dtype=torch.int64, device="cuda")

    @torch.inference_mode()
    def step(index: int) -> None:
        pieces.copy_(encoder(audio[index % len(audio)]).argmax(-1))

    measure(args, step, torch.cuda.synchronize)


main()
