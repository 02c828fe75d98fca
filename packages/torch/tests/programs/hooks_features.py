"""Hooks: features of inner layers, gradients, Grad-CAM, and freezing."""

from collections import OrderedDict

import numpy as np
import torch
import torch.nn as nn

rng = np.random.default_rng(0)
net = nn.Sequential(
    OrderedDict(
        [
            ("conv1", nn.Conv2d(3, 4, 3, padding=1)),
            ("relu1", nn.ReLU()),
            ("pool", nn.AvgPool2d(2)),
            ("conv2", nn.Conv2d(4, 6, 3, padding=1)),
            ("relu2", nn.ReLU()),
            ("gap", nn.AdaptiveAvgPool2d(1)),
            ("flat", nn.Flatten()),
            ("fc", nn.Linear(6, 5)),
        ]
    )
)
for p in net.parameters():
    p.data.copy_(torch.from_numpy(rng.normal(0, 0.3, tuple(p.shape))))
x = torch.from_numpy(rng.normal(size=(2, 3, 8, 8)).astype(np.float32))

activation, order = {}, []


def get_activation(name):
    def hook(model, input, output):
        activation[name] = output.detach()
        order.append(name)

    return hook


handles = [
    module.register_forward_hook(get_activation(name)) for name, module in net.named_children()
]
net(x)
print(order)
print({k: tuple(v.shape) for k, v in activation.items()})
for h in handles:
    h.remove()

# scale what comes in, replace what goes out
pre = net.conv1.register_forward_pre_hook(lambda m, args: (args[0] * 0.5,))
post = net.fc.register_forward_hook(lambda m, args, out: out + 1)
changed = net(x)
pre.remove(), post.remove()
print(f"{changed.sum().item():.4f} {net(x).sum().item():.4f}")

# Grad-CAM
features = []
handle = net.relu2.register_forward_hook(lambda m, i, o: (features.append(o), o.retain_grad())[0])
scores = net(x)
handle.remove()
scores.gather(1, scores.argmax(1, keepdim=True)).sum().backward()
weights = features[0].grad.mean(dim=(2, 3), keepdim=True)
cam = torch.relu((weights * features[0]).sum(1)).detach()
cam = cam / (cam.amax(dim=(1, 2), keepdim=True) + 1e-8)
print("cam", tuple(cam.shape), f"{cam.mean().item():.4f}")

# hooks of tensors
seen = []
w = torch.ones(3, requires_grad=True)
h = w.register_hook(lambda g: g * 2)
y = w * torch.tensor([1.0, 2.0, 3.0])
y.register_hook(lambda g: seen.append(g.clone()))
y.sum().backward()
h.remove()
print(w.grad.tolist(), seen[0].tolist())

# gradients that pass a layer
passed = []
try:
    handle = net.conv2.register_full_backward_hook(
        lambda module, gin, gout: passed.append((tuple(gin[0].shape), tuple(gout[0].shape)))
    )
    net(x.requires_grad_()).sum().backward()
    handle.remove()
    print("# passed", passed)
except AttributeError as error:
    print("#", error)

# freeze, and train the head
for name, p in net.named_parameters():
    p.requires_grad = name.startswith("fc")
before = {n: p.clone() for n, p in net.named_parameters()}
optimizer = torch.optim.SGD(filter(lambda p: p.requires_grad, net.parameters()), lr=0.1)
optimizer.zero_grad()
net(x.detach()).pow(2).mean().backward()
optimizer.step()
print([n for n, p in net.named_parameters() if not torch.equal(before[n], p)])
newhead = nn.Sequential(*list(net.children())[:-1], nn.Linear(6, 2, bias=False))
print(len(newhead), newhead[-1].bias, newhead[1:3])
