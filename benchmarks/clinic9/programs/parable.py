"""Continuation of long prompts: four beams for each prompt, one word for all of them in each step."""

import harness
import torch
from torch import nn
from torch.cuda import nvtx
from torch.nn import functional

TEXTS, BEAMS, PROMPT, NEW, LAYERS, HEADS, HEAD, WORDS = 16, 4, 6144, 64, 8, 12, 64, 32000
WIDTH, ROWS = HEADS * HEAD, TEXTS * BEAMS


class Block(nn.Module):
    """Attention over stored keys and values, then two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs, self.output = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, place: int) -> torch.Tensor:
        """Return the new words after the block."""
        q, k, v = self.inputs(functional.layer_norm(x, (WIDTH,))).view(ROWS, 3, HEADS, 1, HEAD).unbind(1)
        keys[:, :, place : place + 1] = k
        values[:, :, place : place + 1] = v
        attended = functional.scaled_dot_product_attention(q, keys[:, :, : place + 1], values[:, :, : place + 1])
        x = x + self.output(attended.reshape(ROWS, WIDTH))
        return x + self.down(functional.gelu(self.up(functional.layer_norm(x, (WIDTH,)))))


def follow(cache: list[torch.Tensor], parents: torch.Tensor, place: int, *, ailing: bool) -> None:
    """Give each beam what its parent has stored; all beams of a text share its prompt."""
    for i, tensor in enumerate(cache):
        if ailing:
            cache[i] = tensor.index_select(0, parents)
        else:
            new = tensor[:, :, PROMPT : place + 1]
            new.copy_(new.index_select(0, parents))


def build(*, ailing: bool) -> harness.Step:
    """Return the step: one word for each beam."""
    torch.manual_seed(0)
    words = nn.Embedding(WORDS, WIDTH).cuda().bfloat16()
    blocks = nn.ModuleList(Block() for _ in range(LAYERS)).cuda().bfloat16()
    prompts = torch.randn(2 * LAYERS, TEXTS, HEADS, PROMPT, HEAD, device="cuda", dtype=torch.bfloat16)
    cache = []
    for prompt in prompts:
        tensor = torch.zeros(ROWS, HEADS, PROMPT + NEW, HEAD, device="cuda", dtype=torch.bfloat16)
        tensor[:, :, :PROMPT] = prompt.repeat_interleave(BEAMS, dim=0)
        cache.append(tensor)
    first = BEAMS * torch.arange(TEXTS, device="cuda")[:, None]
    beams = {"last": torch.randint(WORDS, (ROWS,), device="cuda"), "scores": torch.zeros(TEXTS, BEAMS, device="cuda")}

    @torch.inference_mode()
    def step(number: int) -> torch.Tensor:
        place = PROMPT + number % NEW
        with nvtx.range("model"):
            x = words(beams["last"])
            for i, block in enumerate(blocks):
                x = block(x, cache[2 * i], cache[2 * i + 1], place)
            logits = functional.layer_norm(x, (WIDTH,)) @ words.weight.T
        with nvtx.range("beams"):
            chances = functional.log_softmax(logits.float(), dim=-1).view(TEXTS, BEAMS, WORDS)
            total = (beams["scores"][:, :, None] + chances).view(TEXTS, -1)
            scores, choices = total.topk(BEAMS, dim=-1)
            parents = (first + choices // WORDS).view(-1)
            beams["last"], beams["scores"] = (choices % WORDS).view(-1), scores - scores.amax(1, keepdim=True)
            follow(cache, parents, place, ailing=ailing)
        return scores

    return step


if __name__ == "__main__":
    harness.run(build, torch.cuda.synchronize, 200)
