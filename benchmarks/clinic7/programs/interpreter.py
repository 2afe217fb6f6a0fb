"""Beam search of a translator: eight layers of LSTM cells, 12 sentences, 5 beams each."""

import harness
import torch
from torch import nn
from torch.cuda import nvtx

SENTENCES, BEAMS, WORDS, WIDTH, LAYERS, SOURCE, LENGTH = 12, 5, 32000, 1024, 8, 48, 4


class Decoder(nn.Module):
    """One word for each beam: an embedding, LSTM cells, attention over the source, logits."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.cells = nn.ModuleList(nn.LSTMCell(WIDTH, WIDTH) for _ in range(LAYERS))
        self.query = nn.Linear(WIDTH, WIDTH)
        self.logits = nn.Linear(2 * WIDTH, WORDS)

    def forward(
        self, tokens: torch.Tensor, hidden: torch.Tensor, memory: torch.Tensor, source: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the log probabilities of the next words, and the states of the cells."""
        x = self.words(tokens)
        hiddens, memories = [], []
        for layer, cell in enumerate(self.cells):
            h, c = cell(x, (hidden[layer], memory[layer]))
            hiddens.append(h)
            memories.append(c)
            x = x + h
        weights = torch.softmax(torch.einsum("bd,bsd->bs", self.query(x), source), -1)
        context = torch.einsum("bs,bsd->bd", weights, source)
        logits = self.logits(torch.cat([x, context], -1))
        return torch.log_softmax(logits.float(), -1), torch.stack(hiddens), torch.stack(memories)


def build(*, ailing: bool) -> harness.Step:
    """Return the step: four words of each sentence."""
    torch.manual_seed(0)
    model = Decoder().cuda().half().eval()
    source = torch.randn(SENTENCES * BEAMS, SOURCE, WIDTH, device="cuda", dtype=torch.half) / 16
    first = torch.arange(SENTENCES * BEAMS, device="cuda") % WORDS

    def search_each(
        log_p: torch.Tensor, total: torch.Tensor, hypotheses: list[list[list[int]]]
    ) -> tuple[torch.Tensor, ...]:
        tokens, parents, totals = [], [], []
        for sentence in range(SENTENCES):
            rows = slice(sentence * BEAMS, (sentence + 1) * BEAMS)
            scores = (log_p[rows] + total[rows, None]).view(-1)
            best, indices = scores.topk(BEAMS)
            grown = []
            for score, index in zip(best.tolist(), indices.tolist(), strict=True):
                beam, token = divmod(index, WORDS)
                grown.append([*hypotheses[sentence][beam], token])
                tokens.append(token)
                parents.append(sentence * BEAMS + beam)
                totals.append(score)
            hypotheses[sentence] = grown
        return (
            torch.tensor(tokens, device="cuda"),
            torch.tensor(parents, device="cuda"),
            torch.tensor(totals, device="cuda"),
        )

    offsets = (torch.arange(SENTENCES, device="cuda") * BEAMS)[:, None]

    def search_all(
        log_p: torch.Tensor, total: torch.Tensor, history: list[tuple[torch.Tensor, torch.Tensor]]
    ) -> tuple[torch.Tensor, ...]:
        scores = (log_p + total[:, None]).view(SENTENCES, BEAMS * WORDS)
        best, indices = scores.topk(BEAMS, dim=1)
        tokens = (indices % WORDS).view(-1)
        parents = (torch.div(indices, WORDS, rounding_mode="floor") + offsets).view(-1)
        history.append((tokens, parents))
        return tokens, parents, best.view(-1)

    @torch.inference_mode()
    def step(_: int) -> None:
        nvtx.range_push("translate")
        hidden = torch.zeros(LAYERS, SENTENCES * BEAMS, WIDTH, device="cuda", dtype=torch.half)
        memory = torch.zeros_like(hidden)
        total = torch.zeros(SENTENCES * BEAMS, device="cuda")
        tokens = first
        hypotheses = [[[] for _ in range(BEAMS)] for _ in range(SENTENCES)]
        history = []
        for _ in range(LENGTH):
            nvtx.range_push("decoder")
            log_p, hidden, memory = model(tokens, hidden, memory, source)
            nvtx.range_pop()
            nvtx.range_push("search")
            if ailing:
                tokens, parents, total = search_each(log_p, total, hypotheses)
            else:
                tokens, parents, total = search_all(log_p, total, history)
            hidden, memory = hidden[:, parents], memory[:, parents]
            nvtx.range_pop()
        if not ailing:
            torch.stack([torch.stack(pair) for pair in history]).tolist()  # the words and parents, once
        nvtx.range_pop()

    return step


if __name__ == "__main__":
    harness.run(build, torch.cuda.synchronize)
