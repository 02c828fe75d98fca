"""ultralytics: a small YOLO built from its YAML: outputs, its loss, gradients, boxes after NMS."""

import torch
from recording import array, fill, record
from ultralytics.nn.tasks import DetectionModel
from ultralytics.utils import ops
from ultralytics.utils.nms import non_max_suppression

model = fill(DetectionModel("yolov8n.yaml", ch=3, nc=4, verbose=False))
images = array(0, 2, 3, 64, 64).sigmoid()
batch = {
    "img": images,
    "batch_idx": torch.tensor([0.0, 0.0, 1.0]),
    "cls": torch.tensor([[0.0], [2.0], [3.0]]),
    "bboxes": torch.tensor([[0.5, 0.5, 0.4, 0.4], [0.3, 0.3, 0.2, 0.3], [0.6, 0.4, 0.5, 0.5]]),
}
from ultralytics.cfg import get_cfg  # noqa: E402

model.args = get_cfg()
loss, items = model(batch)
record("loss", items, rtol=1e-2)
loss.sum().backward()
record("gradient", model.model[0].conv.weight.grad.abs().sum(), rtol=2e-2)
model.eval()
with torch.no_grad():
    output = model(images)
record("output", output[0], rtol=1e-2)
boxes = torch.cat([array(1, 1, 2, 50) * 8 + 32, array(2, 1, 2, 50).abs() * 8 + 8], 1)
picked = non_max_suppression(torch.cat([boxes, array(3, 1, 4, 50).sigmoid()], 1), 0.6, 0.5)
record("boxes", picked)
record("xywh", ops.xyxy2xywh(boxes[0].T))
fused = model.fuse(verbose=False)
with torch.no_grad():
    record("fused", fused(images)[0], rtol=1e-2)
