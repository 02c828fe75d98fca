"""denoising-diffusion-pytorch: its Unet's loss of noise, gradients, and DDIM's steps."""

import torch
from denoising_diffusion_pytorch import GaussianDiffusion, Unet
from recording import array, fill, record

torch.manual_seed(0)
model = fill(Unet(dim=8, dim_mults=(1, 2), flash_attn=False, channels=1))
diffusion = GaussianDiffusion(model, image_size=16, timesteps=20, sampling_timesteps=4)
images = array(0, 2, 1, 16, 16).sigmoid()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
losses = []
for _ in range(4):
    loss = diffusion(images)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
record("losses", losses, rtol=1e-2)
torch.manual_seed(1)
record("samples", diffusion.sample(batch_size=2), rtol=5e-2, atol=2e-2)
