"""torchvision: resnet18 for 20 steps, transforms.v2, boxes, and the operators of detection."""

import torch
from recording import array, fill, gradients, record
from torch import nn
from torchvision import models, ops, tv_tensors
from torchvision.transforms import v2
from torchvision.utils import make_grid

model = fill(models.resnet18(num_classes=10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
x, y = array(0, 4, 3, 32, 32), torch.tensor([1, 2, 3, 4])
losses = []
for _ in range(20):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    if not losses:  # those of the last steps are small differences, mostly of rounding
        record("gradients", gradients(model), rtol=5e-3)
    optimizer.step()
    losses.append(loss.item())
record("losses", losses, rtol=1e-2)
# PyTorch with its kernels for AVX2 is as far from itself with those for AVX-512
record("evaluated", model.eval()(x), rtol=2e-2)

image = (array(1, 3, 20, 24).abs() * 80).clamp(0, 255).to(torch.uint8)
steps = v2.Compose(
    [
        v2.Resize((16, 18), antialias=True),
        v2.CenterCrop(14),
        v2.RandomHorizontalFlip(1.0),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.5] * 3, [0.25] * 3),
    ]
)
record("image", steps(image), rtol=1e-2)
boxes = tv_tensors.BoundingBoxes(
    [[2, 3, 10, 12], [4, 4, 20, 18]], format="XYXY", canvas_size=(20, 24)
)
picture, moved = steps(tv_tensors.Image(image), boxes)
record("type", type(moved).__name__)
record("boxes", moved)
record("grid", make_grid(picture[None].repeat(4, 1, 1, 1), nrow=2), rtol=1e-2)

corners = array(2, 30, 2).abs() * 10
found = torch.cat([corners, corners + array(3, 30, 2).abs() * 8 + 1], 1)
record("iou", ops.box_iou(found, found))
record("giou", ops.generalized_box_iou(found, found))
record("nms", ops.nms(found, array(4, 30), 0.3))
feature = array(5, 1, 4, 16, 16).requires_grad_()
pooled = ops.roi_align(feature, [found[:5]], (3, 3), 0.5, 2)
pooled.square().sum().backward()
record("roi_align", pooled)
record("roi_align gradient", feature.grad)
record("deform_conv2d", ops.deform_conv2d(feature, array(6, 1, 18, 14, 14), array(7, 2, 4, 3, 3)))
record("focal", ops.sigmoid_focal_loss(array(8, 10), torch.ones(10), reduction="mean"))
