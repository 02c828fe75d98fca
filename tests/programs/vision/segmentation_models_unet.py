"""segmentation-models-pytorch: Unet and FPN on small encoders, their losses and metrics."""

import segmentation_models_pytorch as smp
import torch
from recording import array, fill, gradients, record

x, y = array(0, 2, 3, 64, 64), (array(1, 2, 1, 64, 64) > 0.5).float()
model = fill(smp.Unet("resnet18", encoder_weights=None, decoder_channels=(64, 32, 16, 8, 8)))
dice = smp.losses.DiceLoss("binary")
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
losses = []
for step in range(20):
    logits = model(x)
    loss = dice(logits, y) + smp.losses.SoftBCEWithLogitsLoss()(logits, y)
    optimizer.zero_grad()
    loss.backward()
    if not step:
        record("output", logits, rtol=1e-2)
        record("gradients", gradients(model), rtol=2e-2)
    optimizer.step()
    losses.append(loss.item())
record("losses", losses, rtol=1e-2)
# PyTorch with its kernels for AVX2 is as far from itself with those for AVX-512
record("evaluated", model.eval()(x), rtol=1e-1)

counts = smp.metrics.get_stats((y * 0.9), y.long(), mode="binary", threshold=0.5)
record("iou", smp.metrics.iou_score(*counts, reduction="micro"))
logits, labels = array(2, 2, 3, 16, 16), torch.arange(512).reshape(2, 16, 16) % 3
for name in ("JaccardLoss", "LovaszLoss", "FocalLoss", "DiceLoss", "TverskyLoss"):
    record(name, getattr(smp.losses, name)("multiclass")(logits, labels))
for kind in (smp.FPN, smp.Linknet, smp.DeepLabV3Plus, smp.Segformer):
    net = fill(kind("mobilenet_v2", encoder_weights=None)).eval()
    record(kind.__name__, net(x), rtol=1e-2)
model.save_pretrained("unet")
record("loaded", smp.from_pretrained("unet").eval()(x), rtol=1e-1)
