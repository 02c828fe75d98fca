"""A U-Net that segments discs: skips, upsampling, a dice loss."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class DoubleConv(nn.Sequential):
    def __init__(self, in_channels, out_channels, mid_channels=None):
        mid = mid_channels or out_channels
        super().__init__(
            nn.Conv2d(in_channels, mid, kernel_size=3, padding=1, bias=False),
            nn.GroupNorm(2, mid),
            nn.ReLU(inplace=True),
            nn.Conv2d(mid, out_channels, kernel_size=3, padding=1, bias=False),
            nn.GroupNorm(2, out_channels),
            nn.ReLU(inplace=True),
        )


class Up(nn.Module):
    def __init__(self, in_channels, out_channels, bilinear=True):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(in_channels, out_channels, in_channels // 2)
        else:
            self.up = nn.ConvTranspose2d(in_channels, in_channels // 2, kernel_size=2, stride=2)
            self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        dy, dx = x2.size()[2] - x1.size()[2], x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.conv(torch.cat([x2, x1], dim=1))


class UNet(nn.Module):
    def __init__(self, n_channels=1, n_classes=1, bilinear=True):
        super().__init__()
        factor = 2 if bilinear else 1
        self.inc = DoubleConv(n_channels, 4)
        self.down1 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(4, 8))
        self.down2 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(8, 16 // factor))
        self.up1 = Up(16, 8 // factor, bilinear)
        self.up2 = Up(8, 4, bilinear)
        self.outc = nn.Conv2d(4, n_classes, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        return self.outc(self.up2(self.up1(x3, x2), x1))


def dice_loss(logits, target, epsilon=1e-6):
    p = logits.sigmoid()
    inter = 2 * (p * target).sum(dim=(-1, -2))
    sets = p.sum(dim=(-1, -2)) + target.sum(dim=(-1, -2))
    return 1 - ((inter + epsilon) / (sets + epsilon)).mean()


rng = np.random.default_rng(0)
ys, xs = np.mgrid[:18, :18]
centres = rng.integers(4, 14, (16, 2))
masks = ((ys - centres[:, :1, None]) ** 2 + (xs - centres[:, 1:, None]) ** 2 < 16)[:, None]
noisy = masks + rng.normal(0, 0.3, masks.shape)
images, masks = torch.as_tensor(noisy, dtype=torch.float32), torch.as_tensor(masks).float()
for bilinear in (True, False):
    model = UNet(bilinear=bilinear).to(memory_format=torch.channels_last)
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() == 4:
                scale = (2.0 / p[0].numel()) ** 0.5
                p.copy_(torch.from_numpy(rng.normal(0, scale, tuple(p.shape))))
            elif p is model.outc.bias:
                p.zero_()
    for m in model.modules():
        if isinstance(m, nn.ConvTranspose2d):
            nn.init.zeros_(m.bias)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3, momentum=0.5, foreach=True)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", patience=5)
    for step in range(20):
        logits = model(images)
        loss = F.binary_cross_entropy_with_logits(logits, masks) + dice_loss(logits, masks)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step(-loss.item())
        if step == 0:
            print(f"bilinear {bilinear} step {step} loss {loss.item():.3f}")
    iou = ((logits > 0) & (masks > 0.5)).sum() / ((logits > 0) | (masks > 0.5)).sum()
    print("# iou", iou.item(), "loss", loss.item())
    assert iou > 0.5, iou
