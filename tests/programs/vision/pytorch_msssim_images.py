"""pytorch-msssim: SSIM and MS-SSIM of images, as functions and modules, minimised for 10 steps."""

import torch
from pytorch_msssim import MS_SSIM, SSIM, ms_ssim, ssim
from recording import array, record

one, two = array(0, 2, 3, 192, 192).sigmoid(), array(1, 2, 3, 192, 192).sigmoid()
record("ssim", ssim(one, two, data_range=1, size_average=False))
record("ms_ssim", ms_ssim(one, 0.7 * one + 0.3 * two, data_range=1, size_average=False))
record("nonnegative", ssim(one, -two, data_range=1, nonnegative_ssim=True))
record("module", MS_SSIM(data_range=1.0, channel=3)(one, 0.5 * one))
image = torch.full((1, 3, 32, 32), 0.5, requires_grad=True)
measure = SSIM(data_range=1.0, channel=3, win_size=7)
optimizer = torch.optim.Adam([image], 0.02)
losses = []
for _ in range(10):
    loss = 1 - measure(image, one[:1, :, :32, :32])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
record("losses", losses)
record("image", image, rtol=1e-2)
