"""Water levels: a recurrent network reads the levels of many stations, hour by hour, and predicts the next hours."""

import torch
from harness import arguments, measure
from torch import nn

STATIONS, HOURS, INPUTS, WIDTH = 128, 168, 32, 256

args = arguments(__doc__)
torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
cell = nn.LSTMCell(INPUTS, WIDTH).cuda()
network = nn.LSTM(INPUTS, WIDTH).cuda()
network.load_state_dict({f"{name}_l0": value for name, value in cell.state_dict().items()})
head = nn.Linear(WIDTH, 24).cuda()
levels = torch.randn(HOURS, STATIONS, INPUTS, device="cuda")


def read(series: torch.Tensor) -> torch.Tensor:
    if args.variant == "cured":
        return network(series)[0]
    hidden = torch.zeros(STATIONS, WIDTH, device="cuda")
    memory = torch.zeros_like(hidden)
    outputs = []
    for hour in range(HOURS):
        hidden, memory = cell(series[hour], (hidden, memory))
        outputs.append(hidden)
    return torch.stack(outputs)


@torch.no_grad()
def step(index: int) -> torch.Tensor:
    torch.cuda.nvtx.range_push("forecast")
    result = head(read(levels + 0.01 * index)[-24:])
    torch.cuda.nvtx.range_pop()
    return result


measure(args, step, torch.cuda.synchronize)
