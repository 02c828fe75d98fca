"""A denoising diffusion model on points: schedule, noise prediction, sampling."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class SinusoidalPositionEmbeddings(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, time):
        half = self.dim // 2
        scale = math.log(10000) / (half - 1)
        freqs = torch.exp(torch.arange(half, device=time.device) * -scale)
        angles = time[:, None] * freqs[None, :]
        return torch.cat((angles.sin(), angles.cos()), dim=-1)


class Denoiser(nn.Module):
    def __init__(self, width=32, time_dim=8):
        super().__init__()
        self.time_mlp = nn.Sequential(
            SinusoidalPositionEmbeddings(time_dim), nn.Linear(time_dim, width), nn.GELU()
        )
        self.inp = nn.Linear(2, width)
        self.mid = nn.Linear(width, width)
        self.out = nn.Linear(width, 2)

    def forward(self, x, t):
        h = F.silu(self.inp(x) + self.time_mlp(t))
        return self.out(F.silu(self.mid(h)) + h)


def extract(a, t, x_shape):
    return a.gather(-1, t).reshape(t.shape[0], *((1,) * (len(x_shape) - 1)))


timesteps = 20
betas = torch.linspace(1e-4, 0.2, timesteps)
alphas = 1.0 - betas
alphas_cumprod = torch.cumprod(alphas, axis=0)
alphas_prev = F.pad(alphas_cumprod[:-1], (1, 0), value=1.0)
posterior_variance = betas * (1.0 - alphas_prev) / (1.0 - alphas_cumprod)
print(f"{alphas_cumprod[-1].item():.4f} {posterior_variance.sum().item():.4f}")

rng = np.random.default_rng(0)
model = Denoiser()
for p in model.parameters():
    p.data = torch.from_numpy(rng.normal(0, 0.2, p.shape)).float()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=60)
for step in range(60):
    angle = rng.uniform(0, 2 * np.pi, 128)
    x0 = torch.as_tensor(np.stack([np.cos(angle), np.sin(angle)], 1), dtype=torch.float32)
    t = torch.from_numpy(rng.integers(0, timesteps, 128)).long()
    noise = torch.from_numpy(rng.normal(size=(128, 2))).float()
    x_t = (
        extract(alphas_cumprod, t, x0.shape).sqrt() * x0
        + extract(1 - alphas_cumprod, t, x0.shape).sqrt() * noise
    )
    loss = F.huber_loss(model(x_t, t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 15 == 0:
        print(f"{step} {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.5f}")


@torch.inference_mode()
def sample(n):
    x = torch.randn(n, 2)
    for i in reversed(range(timesteps)):
        t = torch.full((n,), i, dtype=torch.long)
        mean = (x - betas[i] * model(x, t) / (1 - alphas_cumprod[i]).sqrt()) / alphas[i].sqrt()
        x = mean if i == 0 else mean + posterior_variance[i].sqrt() * torch.randn_like(x)
    return x


torch.manual_seed(0)
points = sample(256)
radius = points.norm(dim=1).mean().item()
print(tuple(points.shape), points.isfinite().all().item())
print("# radius", radius)
assert 0.5 < radius < 1.8
