"""timm: ten small models of ten families: outputs, loss and gradients, features, 3 steps each."""

import timm
import timm.optim
import torch
from recording import array, fill, gradients, record

NAMES = {
    "resnet18": 64,
    "efficientnet_b0": 64,
    "mobilenetv3_small_100": 64,
    "convnext_atto": 64,
    "regnetx_002": 64,
    "densenet121": 64,
    "vit_tiny_patch16_224": 64,
    "deit_tiny_patch16_224": 64,
    "mixer_s32_224": 64,
    "swin_tiny_patch4_window7_224": 56,
}
for name, size in NAMES.items():
    options = {"num_classes": 10}
    if "patch" in name or "mixer" in name:
        options["img_size"] = size
    model = fill(timm.create_model(name, **options)).eval()
    x, y = array(0, 2, 3, size, size), torch.tensor([1, 2])
    output = model(x)
    loss = torch.nn.functional.cross_entropy(output, y)
    loss.backward()
    record(f"{name} output", output)
    record(f"{name} loss", loss)
    sums = gradients(model)
    record(f"{name} gradients", torch.stack(list(sums.values())), rtol=2e-3)
    optimizer = timm.optim.create_optimizer_v2(model, "adamw", lr=1e-4, weight_decay=0.05)
    for _ in range(3):
        optimizer.step()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
    record(f"{name} trained", model(x), rtol=2e-2)

features = fill(timm.create_model("resnet18", features_only=True)).eval()
record("features", [level.mean() for level in features(array(1, 1, 3, 64, 64))])
record("transform", list(timm.data.resolve_data_config({}, model=model)["mean"]))
