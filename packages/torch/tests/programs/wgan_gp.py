"""A Wasserstein critic with gradient penalty, on points of a ring."""

import numpy as np
import torch
import torch.autograd as autograd
import torch.nn as nn

cuda = bool(torch.cuda.is_available())
Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor
rng = np.random.default_rng(0)


def block(in_feat, out_feat):
    return [nn.Linear(in_feat, out_feat), nn.LeakyReLU(0.2)]


generator = nn.Sequential(*block(2, 32), *block(32, 32), nn.Linear(32, 2))
critic = nn.Sequential(*block(2, 32), *block(32, 32), nn.Linear(32, 1))
for net in (generator, critic):
    for p in net.parameters():
        values = rng.normal(0, 0.3, p.shape) if p.dim() > 1 else np.zeros(p.shape)
        p.data.copy_(torch.from_numpy(values))


def compute_gradient_penalty(D, real_samples, fake_samples):
    alpha = Tensor(rng.random((real_samples.size(0), 1)))
    between = (alpha * real_samples + ((1 - alpha) * fake_samples)).requires_grad_(True)
    d_interpolates = D(between)
    gradients = autograd.grad(
        outputs=d_interpolates,
        inputs=between,
        grad_outputs=Tensor(real_samples.shape[0], 1).fill_(1.0),
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    return ((gradients.view(gradients.size(0), -1).norm(2, dim=1) - 1) ** 2).mean()


optimizer_G = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.9))
optimizer_D = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.9))
for step in range(30):
    for _ in range(2):
        angles = rng.uniform(0, 2 * np.pi, 64)
        real = Tensor(np.stack([np.cos(angles), np.sin(angles)], 1).tolist())
        z = Tensor(rng.normal(size=(64, 2)))
        optimizer_D.zero_grad()
        fake = generator(z)
        penalty = compute_gradient_penalty(critic, real.data, fake.data)
        d_loss = -torch.mean(critic(real)) + torch.mean(critic(fake)) + 10 * penalty
        d_loss.backward()
        optimizer_D.step()
    optimizer_G.zero_grad()
    g_loss = -torch.mean(critic(generator(z)))
    g_loss.backward()
    optimizer_G.step()
    if step % 10 == 0:
        print(f"{step} D {d_loss.item():.4f} G {g_loss.item():.4f} penalty {penalty.item():.4f}")
