"""Scores of inherited risk: the variants of a panel are picked out of the genotypes of a cohort and weighted."""

import harness
import torch

PEOPLE, VARIANTS, PANEL, TRAITS = 16_384, 98_304, 4096, 64


def build(*, ailing: bool) -> harness.Step:
    """Return the step: the scores of all people by one panel."""
    torch.manual_seed(0)
    # copies of the rarer letter, 0 to 2, of each variant
    genotypes = torch.randint(3, (VARIANTS, PEOPLE), device="cuda", dtype=torch.int8)
    if ailing:
        genotypes = genotypes.T.contiguous()  # a row for each person
    panels = [torch.randperm(VARIANTS, device="cuda")[:PANEL] for _ in range(4)]
    weights = [torch.randn(PANEL, TRAITS, device="cuda", dtype=torch.float16) / PANEL**0.5 for _ in panels]

    @torch.no_grad()
    def step(number: int) -> torch.Tensor:
        panel, weight = panels[number % len(panels)], weights[number % len(panels)]
        picked = genotypes[:, panel].half() if ailing else genotypes[panel].half().T
        scores = (picked @ weight).float()
        return (scores - scores.mean(dim=0)) / scores.std(dim=0)

    return step


if __name__ == "__main__":
    harness.run(build, torch.cuda.synchronize)
