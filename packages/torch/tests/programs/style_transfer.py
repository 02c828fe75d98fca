"""Optimise a picture by L-BFGS for the features and Gram matrices of a fixed network."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import LBFGS


class ContentLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target.detach()

    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    return torch.mm(features, features.t()).div(a * b * c * d)


class StyleLoss(nn.Module):
    def __init__(self, target_feature):
        super().__init__()
        self.target = gram_matrix(target_feature).detach()

    def forward(self, input):
        self.loss = F.mse_loss(gram_matrix(input), self.target)
        return input


class Normalization(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.mean = torch.as_tensor(mean).view(-1, 1, 1)
        self.std = torch.as_tensor(std).view(-1, 1, 1)

    def forward(self, img):
        return (img - self.mean) / self.std


rng = np.random.default_rng(0)
features = nn.Sequential(
    nn.Conv2d(3, 6, 3, padding=1),
    nn.ReLU(inplace=True),
    nn.MaxPool2d(2),
    nn.Conv2d(6, 8, 3, padding=1),
    nn.ReLU(inplace=True),
)
for p in features.parameters():
    p.data = torch.from_numpy(rng.normal(0, 0.3, tuple(p.shape)).astype(np.float32))
features.eval().requires_grad_(False)
content = torch.from_numpy(rng.random((1, 3, 12, 12), dtype=np.float32))
style = torch.from_numpy(rng.random((1, 3, 12, 12), dtype=np.float32)) ** 2

model = nn.Sequential(Normalization([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
content_losses, style_losses, i = [], [], 0
for layer in features.children():
    if isinstance(layer, nn.Conv2d):
        i += 1
        name = f"conv_{i}"
    elif isinstance(layer, nn.ReLU):
        name, layer = f"relu_{i}", nn.ReLU(inplace=False)
    else:
        name = f"pool_{i}"
    model.add_module(name, layer)
    if name == "conv_2":
        content_losses.append(ContentLoss(model(content)))
        model.add_module("content_loss", content_losses[-1])
    if isinstance(layer, nn.Conv2d):
        style_losses.append(StyleLoss(model(style)))
        model.add_module(f"style_loss_{i}", style_losses[-1])
print([name for name, _ in model.named_children()])

picture = content.clone().requires_grad_(True)
optimizer = LBFGS([picture])
run, seen = [0], []
while run[0] <= 40:

    def closure():
        with torch.no_grad():
            picture.clamp_(0, 1)
        optimizer.zero_grad()
        model(picture)
        style_score = sum(sl.loss for sl in style_losses)
        content_score = sum(cl.loss for cl in content_losses)
        loss = style_score * 100 + content_score
        loss.backward()
        run[0] += 1
        seen.append(loss.item())
        return style_score + content_score

    optimizer.step(closure)
with torch.no_grad():
    picture.clamp_(0, 1)
print(f"first {seen[0]:.4f} second {seen[1]:.3f}")
assert seen[-1] < 0.5 * seen[0], (seen[0], seen[-1])
