"""Learn a value function off-policy: batches of 512 from a replay memory of sixteen million transitions."""

from __future__ import annotations

import torch
from harness import arguments, measure
from torch import nn
from torch.nn import functional

CAPACITY, BATCH, OBSERVATION, ACTIONS, DISCOUNT = 16_000_000, 512, 8, 4, 0.99


class Memory:
    """Transitions in GPU memory."""

    def __init__(self, *, is_cured: bool) -> None:
        self.is_cured = is_cured
        self.before = torch.randn(CAPACITY, OBSERVATION, device="cuda")
        self.after = torch.randn(CAPACITY, OBSERVATION, device="cuda")
        self.action = torch.randint(ACTIONS, (CAPACITY,), device="cuda")
        self.reward = torch.randn(CAPACITY, device="cuda")

    def sample(self) -> tuple[torch.Tensor, ...]:
        if self.is_cured:
            indices = torch.randint(CAPACITY, (BATCH,), device="cuda")
        else:
            indices = torch.randperm(CAPACITY, device="cuda")[:BATCH]
        return self.before[indices], self.action[indices], self.reward[indices], self.after[indices]


def network() -> nn.Sequential:
    """Return the action values' network."""
    return nn.Sequential(
        nn.Linear(OBSERVATION, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, ACTIONS)
    ).to("cuda")


def main() -> None:
    args = arguments(__doc__)
    torch.manual_seed(9)
    memory = Memory(is_cured=args.variant == "cured")
    online, target = network(), network()
    optimizer = torch.optim.Adam(online.parameters(), lr=3e-4, fused=True)

    def step(index: int) -> None:
        with torch.cuda.nvtx.range("replay"):
            before, action, reward, after = memory.sample()
        with torch.cuda.nvtx.range("update"):
            with torch.no_grad():
                target_value = reward + DISCOUNT * target(after).max(dim=1).values
            value = online(before).gather(1, action[:, None]).squeeze(1)
            optimizer.zero_grad()
            functional.smooth_l1_loss(value, target_value).backward()
            optimizer.step()
        if index % 100 == 0:
            target.load_state_dict(online.state_dict())

    measure(args, step, torch.cuda.synchronize)


main()
