"""Memory against time: activation checkpoints, einsum attention, rotary positions."""

import numpy as np
import torch
import torch.nn as nn
import torch.utils.checkpoint as cp
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

rng = np.random.default_rng(0)


def rotary(x, base=10000.0):
    b, h, t, d = x.shape
    inv = 1.0 / (base ** (torch.arange(0, d, 2).float() / d))
    freqs = torch.outer(torch.arange(t).float(), inv)
    rotated = torch.view_as_complex(x.float().reshape(b, h, t, d // 2, 2)) * torch.polar(
        torch.ones_like(freqs), freqs
    )
    return torch.view_as_real(rotated).flatten(3).type_as(x)


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(dim, dim * 3, bias=False)
        self.to_out = nn.Linear(dim, dim)
        self.norm = RMSNorm(dim)

    def forward(self, x, mask=None):
        b, t, c = x.shape
        qkv = self.to_qkv(self.norm(x)).chunk(3, dim=-1)
        q, k, v = (each.reshape(b, t, self.heads, -1).transpose(1, 2) for each in qkv)
        q, k = rotary(q), rotary(k)
        dots = torch.einsum("bhid,bhjd->bhij", q, k) * (c // self.heads) ** -0.5
        if mask is not None:
            dots = dots.masked_fill(~mask, -torch.finfo(dots.dtype).max)
        out = torch.einsum("bhij,bhjd->bhid", dots.softmax(dim=-1), v)
        return x + self.to_out(out.transpose(1, 2).reshape(b, t, c))


blocks = nn.ModuleList([Attention(16, 2) for _ in range(3)])
for p in blocks.parameters():
    if p.dim() > 1:
        p.data = torch.from_numpy(rng.normal(0, 0.2, tuple(p.shape)).astype(np.float32))
    elif p.sum() != 16:
        nn.init.zeros_(p)
x = torch.from_numpy(rng.normal(size=(2, 6, 16)).astype(np.float32))
mask = torch.ones(6, 6, dtype=torch.bool).tril()
gradients = []
for use in (False, True):
    blocks.zero_grad()
    h = x.clone().requires_grad_()
    out = h
    for block in blocks:
        out = checkpoint(block, out, mask, use_reentrant=False) if use else block(out, mask)
    out.square().mean().backward()
    gradients.append([h.grad] + [p.grad.clone() for p in blocks.parameters()])
    print(use, f"{out.sum().item():.4f} {h.grad.norm().item():.5f}")
print(all(torch.allclose(a, b, atol=1e-6) for a, b in zip(*gradients, strict=True)))
mlp = nn.Sequential(*[nn.Sequential(nn.Linear(16, 16), nn.Mish()) for _ in range(4)])
for p in mlp.parameters():
    p.data.fill_(0.05)
h = x.clone().requires_grad_()
checkpoint_sequential(mlp, 2, h, use_reentrant=False).sum().backward()
print(f"{h.grad.sum().item():.5f}", cp.checkpoint is checkpoint)
