"""Control of a vehicle by a learned model of its motion: the model is linearized along paths, then gains are found."""

import harness
import torch
from torch import nn
from torch.cuda import nvtx

TRAJECTORIES, TIMES, STATE, CONTROL, WIDTH = 160, 8, 24, 8, 512


def build(*, ailing: bool) -> harness.Step:
    """Return the step: the gains of the feedback along all trajectories."""
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    layers = [nn.Linear(STATE + CONTROL, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh()]
    model = nn.Sequential(*layers, nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, STATE)).cuda()
    model.requires_grad_(False)  # noqa: FBT003
    inputs = [torch.randn(TRAJECTORIES * TIMES, STATE + CONTROL, device="cuda") for _ in range(3)]
    unit = torch.eye(STATE, device="cuda")[:, None].expand(STATE, TRAJECTORIES * TIMES, STATE)
    effort = torch.eye(CONTROL, device="cuda")
    stay = torch.eye(STATE, device="cuda")

    def step(number: int) -> torch.Tensor:
        place = inputs[number % len(inputs)].requires_grad_()
        with nvtx.range("model"):
            motion = model(place)
        with nvtx.range("slopes"):
            if ailing:
                rows = [torch.autograd.grad(motion[:, i].sum(), place, retain_graph=True)[0] for i in range(STATE)]
                slopes = torch.stack(rows)
            else:
                (slopes,) = torch.autograd.grad(motion, place, unit, is_grads_batched=True)
        with nvtx.range("gains"), torch.no_grad():
            slopes = slopes.permute(1, 0, 2).reshape(TRAJECTORIES, TIMES, STATE, STATE + CONTROL)
            a, b = slopes[..., :STATE] + stay, slopes[..., STATE:]
            cost, gains = stay.expand(TRAJECTORIES, STATE, STATE), []
            for time in reversed(range(TIMES)):
                to_cost = b[:, time].mT @ cost
                system = effort + to_cost @ b[:, time]
                gain = torch.linalg.solve_ex(system, to_cost @ a[:, time])[0]
                cost = stay + a[:, time].mT @ cost @ (a[:, time] - b[:, time] @ gain)
                gains.append(gain)
            return torch.stack(gains)

    return step


if __name__ == "__main__":
    harness.run(build, torch.cuda.synchronize)
