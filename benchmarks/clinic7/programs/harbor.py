"""Object detection in a stream of pictures: a convolutional network, then non-maximum suppression within each class."""

import harness
import torch
import torchvision
from torch import nn
from torch.cuda import nvtx
from torchvision.ops import batched_nms, nms

PICTURES, CLASSES, SIZE, CANDIDATES, OVERLAP = 1, 20, 640, 1000, 0.5


class Detector(nn.Module):
    """ResNet-18 with a head for boxes and classes."""

    def __init__(self) -> None:
        super().__init__()
        trunk = torchvision.models.resnet18(weights=None)
        self.stem = nn.Sequential(trunk.conv1, trunk.bn1, trunk.relu, trunk.maxpool)
        self.stages = nn.Sequential(trunk.layer1, trunk.layer2, trunk.layer3)
        self.head = nn.Sequential(nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.Conv2d(256, 9 * (CLASSES + 4), 1))

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Return the head's numbers, of shape (pictures, anchors, classes + 4)."""
        numbers = self.head(self.stages(self.stem(pictures)))
        return numbers.permute(0, 2, 3, 1).reshape(len(pictures), -1, CLASSES + 4)


def build(*, ailing: bool) -> harness.Step:
    """Return the step: the detections of a picture."""
    torch.manual_seed(0)
    model = Detector().cuda().half().to(memory_format=torch.channels_last).eval()
    cells = SIZE // 16
    y, x = torch.meshgrid(torch.arange(cells), torch.arange(cells), indexing="ij")
    centers = (torch.stack([x, y], -1).float() * 16 + 8).view(-1, 1, 2).expand(-1, 9, 2).reshape(-1, 2).cuda()
    extents = (24 + 20 * torch.arange(9.0)).repeat(cells * cells)[:, None].expand(-1, 2).cuda()
    prior = torch.randn(cells * cells * 9, CLASSES, device="cuda")  # random weights see the same class everywhere
    batches = [
        torch.rand(PICTURES, 3, SIZE, SIZE, device="cuda").half().to(memory_format=torch.channels_last)
        for _ in range(4)
    ]

    def suppress_each(
        boxes: torch.Tensor, scores: torch.Tensor, labels: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        results = []
        for label in range(CLASSES):
            mask = labels == label
            if not mask.any():
                continue
            of_class, scores_of_class = boxes[mask], scores[mask]
            indices = nms(of_class, scores_of_class, OVERLAP)
            results.append((of_class[indices], scores_of_class[indices]))
        return torch.cat([b for b, _ in results]), torch.cat([s for _, s in results])

    def suppress_all(
        boxes: torch.Tensor, scores: torch.Tensor, labels: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        indices = batched_nms(boxes, scores, labels, OVERLAP)
        return boxes[indices], scores[indices]

    @torch.inference_mode()
    def step(number: int) -> None:
        with nvtx.range("frame"):
            with nvtx.range("network"):
                numbers = model(batches[number % len(batches)]).float()
            with nvtx.range("postprocess"):
                logits = numbers[..., 4:]
                logits = (logits - logits.mean(1, keepdim=True)) / logits.std(1, keepdim=True) + prior
                for picture in range(PICTURES):
                    shift, scale = numbers[picture, :, :2].tanh() * 8, numbers[picture, :, 2:4].tanh() * 0.2
                    extent = extents * torch.exp(scale) / 2
                    boxes = torch.cat([centers + shift - extent, centers + shift + extent], 1)
                    scores, labels = logits[picture].max(1)
                    scores, order = scores.topk(CANDIDATES)
                    suppress = suppress_each if ailing else suppress_all
                    boxes, scores = suppress(boxes[order], scores, labels[order])
                    torch.cat([boxes, scores[:, None]], 1).cpu()

    return step


if __name__ == "__main__":
    harness.run(build, torch.cuda.synchronize)
