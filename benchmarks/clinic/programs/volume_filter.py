"""Filter volumes that lie in host memory.

Ailing: each volume is copied from pageable memory, and the filter waits for it.
Cured: the volumes are pinned, and the next one is copied on a second stream while this one is filtered.
"""

import harness
import torch
from torch.nn import functional


def main() -> None:
    args = harness.arguments(__doc__)
    torch.manual_seed(0)
    is_cured = args.variant == "cured"
    volumes = [torch.randn(1, 1, 128, 256, 256, pin_memory=is_cured) for _ in range(4)]
    kernel = torch.randn(8, 1, 3, 3, 3, device="cuda")
    copier, main_stream = torch.cuda.Stream(), torch.cuda.current_stream()
    slots = [torch.empty(volumes[0].shape, device="cuda") for _ in range(2)]
    ready, free = [torch.cuda.Event() for _ in slots], [torch.cuda.Event() for _ in slots]

    def fetch(index: int) -> None:
        slot = index % 2
        with torch.cuda.stream(copier):
            copier.wait_event(free[slot])
            slots[slot].copy_(volumes[index % 4], non_blocking=True)
            ready[slot].record(copier)

    def step(index: int) -> torch.Tensor:
        if not is_cured:
            volume = volumes[index % 4].cuda()
            return functional.conv3d(volume, kernel, padding=1).abs().amax(1)
        if index == 0:
            fetch(0)
        fetch(index + 1)
        main_stream.wait_event(ready[index % 2])
        result = functional.conv3d(slots[index % 2], kernel, padding=1).abs().amax(1)
        free[index % 2].record(main_stream)
        return result

    harness.measure(args, step, torch.cuda.synchronize)


if __name__ == "__main__":
    main()
