"""vit-pytorch: four transformers of images: outputs, gradients and a few steps of training."""

import torch
from recording import array, fill, gradients, record
from vit_pytorch import SimpleViT, ViT
from vit_pytorch.cait import CaiT
from vit_pytorch.cct import CCT

size = {"image_size": 32, "patch_size": 8, "num_classes": 5, "dim": 32, "depth": 2, "heads": 2}
models = {
    "vit": ViT(**size, mlp_dim=64),
    "simple": SimpleViT(**size, mlp_dim=64),
    "cait": CaiT(**size, cls_depth=1, mlp_dim=64),
    "cct": CCT(
        img_size=(32, 32),
        embedding_dim=32,
        n_conv_layers=1,
        num_layers=2,
        num_heads=2,
        mlp_ratio=2,
        num_classes=5,
        positional_embedding="learnable",
        dropout_rate=0.0,
        attention_dropout=0.0,
        stochastic_depth_rate=0.0,
    ),
}
images, labels = array(0, 4, 3, 32, 32), torch.tensor([0, 1, 2, 3])
for name, model in models.items():
    fill(model)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    losses = []
    for step in range(4):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        if not step:
            record(f"{name} gradients", gradients(model), rtol=5e-3, atol=1e-4)
        optimizer.step()
        losses.append(loss.item())
    record(f"{name} losses", losses, rtol=5e-3)
