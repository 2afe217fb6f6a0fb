"""Proximal policy optimization: advantages of a rollout, then updates of policy and value."""

import harness
import torch
from torch import nn
from torch.cuda import nvtx

TIMES, GAMES, FEATURES, ACTIONS, WIDTH, BATCHES, GAMMA, LAMBDA = 128, 512, 128, 18, 1024, 4, 0.99, 0.95


class Agent(nn.Module):
    """A trunk with a policy and a value."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(FEATURES, WIDTH),
            nn.ReLU(),
            nn.Linear(WIDTH, WIDTH),
            nn.ReLU(),
            nn.Linear(WIDTH, WIDTH),
            nn.ReLU(),
        )
        self.policy, self.value = nn.Linear(WIDTH, ACTIONS), nn.Linear(WIDTH, 1)

    def forward(self, observation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return logits and values."""
        x = self.trunk(observation)
        return self.policy(x), self.value(x)[..., 0]


def estimate_backwards(
    rewards: torch.Tensor, ends: torch.Tensor, values: torch.Tensor, last: torch.Tensor
) -> torch.Tensor:
    """Return the advantages, from the last time to the first."""
    advantages = torch.zeros_like(rewards)
    running = torch.zeros_like(last)
    following = last
    for time in reversed(range(TIMES)):
        going = 1.0 - ends[time]
        delta = rewards[time] + GAMMA * following * going - values[time]
        running = delta + GAMMA * LAMBDA * going * running
        advantages[time] = running
        following = values[time]
    return advantages


def estimate_doubling(
    rewards: torch.Tensor, ends: torch.Tensor, values: torch.Tensor, last: torch.Tensor
) -> torch.Tensor:
    """Return the advantages: a scan that doubles its reach, for all times at once."""
    going = 1.0 - ends
    sums = rewards + GAMMA * torch.cat([values[1:], last[None]]) * going - values
    factors = GAMMA * LAMBDA * going
    reach = 1
    while reach < TIMES:
        sums = torch.cat([sums[:-reach] + factors[:-reach] * sums[reach:], sums[-reach:]])
        factors = torch.cat([factors[:-reach] * factors[reach:], torch.zeros_like(factors[-reach:])])
        reach *= 2
    return sums


def build(*, ailing: bool) -> harness.Step:
    """Return the step: the advantages and four updates."""
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    agent = Agent().cuda()
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-4, fused=True)
    observation = torch.randn(TIMES, GAMES, FEATURES, device="cuda")
    actions = torch.randint(ACTIONS, (TIMES, GAMES), device="cuda")
    rewards = torch.rand(TIMES, GAMES, device="cuda")
    ends = (torch.rand(TIMES, GAMES, device="cuda") < 0.01).float()
    old = torch.full((TIMES, GAMES), -2.9, device="cuda")
    estimate = estimate_backwards if ailing else estimate_doubling

    def update(part: list[torch.Tensor]) -> None:
        observation, actions, old, advantages, returns = part
        logits, values = agent(observation)
        log_p = torch.log_softmax(logits, -1).gather(-1, actions[:, None])[:, 0]
        ratio = torch.exp(log_p - old)
        scaled = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        gain = torch.minimum(ratio * scaled, ratio.clamp(0.8, 1.2) * scaled).mean()
        loss = (values - returns).square().mean() * 0.5 - gain
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    def step(_: int) -> None:
        nvtx.range_push("iteration")
        nvtx.range_push("advantages")
        with torch.no_grad():
            values = agent(observation)[1]
            advantages = estimate(rewards, ends, values, values[-1])
            returns = advantages + values
        nvtx.range_pop()
        nvtx.range_push("updates")
        order = torch.randperm(TIMES * GAMES, device="cuda")
        flat = [t.flatten(0, 1) for t in (observation, actions, old, advantages, returns)]
        for rows in order.chunk(BATCHES):
            update([t[rows] for t in flat])
        nvtx.range_pop()
        nvtx.range_pop()

    return step


if __name__ == "__main__":
    harness.run(build, torch.cuda.synchronize)
