"""opacus: clipped gradients of single samples for 20 steps, the accountant, noise and Poisson."""

import torch
from opacus import GradSampleModule, PrivacyEngine
from opacus.validators import ModuleValidator
from recording import array, fill, record
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = array(0, 40, 1, 8, 8)
data = TensorDataset(x, (x.sum((1, 2, 3)) > 0).long())


def network():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2)
    )


def train(model, optimizer, loader, epochs):
    losses = []
    for _ in range(epochs):
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


for noise in (0.0, 1.0):
    model = fill(network())
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        data_loader=DataLoader(data, batch_size=8),
        noise_multiplier=noise,
        max_grad_norm=1.0,
        poisson_sampling=noise > 0,
    )
    losses = train(model, optimizer, loader, 4)
    if noise:
        record("epsilon", engine.get_epsilon(delta=1e-5))
        record("steps", len(losses))
    else:
        record("losses", losses)
        record("trained", model.state_dict())

single = GradSampleModule(fill(nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(12, 2))))
single(torch.arange(6).reshape(2, 3)).square().sum().backward()
record("single", {name: p.grad_sample for name, p in single.named_parameters()})
fixed = ModuleValidator.fix(nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)))
record("fixed", type(fixed[1]).__name__)
record("errors", len(ModuleValidator.validate(nn.BatchNorm2d(4))))
