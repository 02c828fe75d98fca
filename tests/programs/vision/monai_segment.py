"""monai: a UNet with Dice loss for 20 steps, transforms, sliding windows, metrics."""

import torch
from monai.data import DataLoader, Dataset, MetaTensor
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss, DiceLoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet
from monai.transforms import (
    AsDiscrete,
    Compose,
    EnsureChannelFirstd,
    Flipd,
    Resized,
    ScaleIntensityd,
    ToTensord,
)
from recording import array, fill, record

keys = ["image", "label"]
steps = Compose(
    [
        EnsureChannelFirstd(keys, channel_dim="no_channel"),
        ScaleIntensityd("image"),
        Resized(keys, (16, 16), mode=("bilinear", "nearest")),
        Flipd(keys, 0),
        ToTensord(keys),
    ]
)
images = [array(i, 20, 20).numpy() for i in range(8)]
items = [{"image": image, "label": (image > 0.5).astype("float32")} for image in images]
loader = DataLoader(Dataset(items, steps), batch_size=4)
model = fill(UNet(2, 1, 2, channels=(8, 16), strides=(2,), num_res_units=1, norm="batch"))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = DiceCELoss(to_onehot_y=True, softmax=True)
losses = []
for _ in range(10):
    for batch in loader:
        loss = criterion(model(batch["image"]), batch["label"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
record("losses", losses)
# a bias before batch norm has a gradient of 0 but for rounding, of which Adam makes steps
biases = [n for n, p in model.named_parameters() if n.endswith("conv.bias")]
trained = {n: p for n, p in model.named_parameters() if n not in biases}
record("trained", trained, rtol=1e-2, atol=1e-3)
record("batch", batch["image"])
record("kind", isinstance(batch["image"], MetaTensor))

model.eval()
with torch.no_grad():
    windows = sliding_window_inference(array(20, 1, 1, 40, 40), (16, 16), 2, model, overlap=0.5)
record("windows", windows, rtol=1e-2)
metric = DiceMetric(include_background=False)
pick = AsDiscrete(argmax=True, to_onehot=2)
truth = AsDiscrete(to_onehot=2)
metric([pick(windows[0])], [truth((array(21, 1, 40, 40) > 0).float())])
record("dice", metric.aggregate(), rtol=1e-2)
record(
    "dice loss", DiceLoss(sigmoid=True)(array(22, 2, 1, 8, 8), (array(23, 2, 1, 8, 8) > 0).float())
)
