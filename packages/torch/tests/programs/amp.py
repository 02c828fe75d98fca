"""A mixed-precision loop: autocast, a gradient scaler, clipping, and what both say on a CPU."""

import warnings

import numpy as np
import torch
import torch.nn as nn

warnings.simplefilter("ignore")
device = "cuda" if torch.cuda.is_available() else "cpu"
use_amp = device == "cuda"
rng = np.random.default_rng(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)).to(device)
for p in model.parameters():
    p.data.copy_(torch.from_numpy(rng.normal(0, 0.3, p.shape)))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler(enabled=use_amp)
x = torch.from_numpy(rng.normal(size=(64, 8)).astype(np.float32))
t = (x.sum(1) > 0).long()
for step in range(12):
    with torch.autocast(device_type=device, dtype=torch.float16, enabled=use_amp):
        output = model(x)
        assert output.dtype is (torch.float16 if use_amp else torch.float32)
        loss = nn.functional.cross_entropy(output, t)
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    scaler.step(opt)
    scaler.update()
    opt.zero_grad(set_to_none=True)
    if step % 4 == 0:
        print(f"{step} {loss.item():.4f} scale {scaler.get_scale()}")
print(scaler.is_enabled(), scaler.state_dict())

# the scaler at work
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
w = torch.ones(3, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
for factor in (1.0, 1.0, float("inf"), 1.0):
    opt.zero_grad()
    scaler.scale((w * factor).sum()).backward()
    scaler.step(opt)
    scaler.update()
    print(w.detach().numpy().round(4).tolist(), scaler.get_scale())


class Double(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
    def forward(ctx, x):
        return x * 2

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, g):
        return g * 2


z = torch.ones(2, requires_grad=True)
Double.apply(z).sum().backward()
print(z.grad.tolist())
